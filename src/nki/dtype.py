"""`nki.dtype`: the dtype names as attributes, as older kernels import them."""

from __future__ import annotations

from nki.dtypes import DType

uint8: DType = "uint8"
int8: DType = "int8"
uint16: DType = "uint16"
int16: DType = "int16"
uint32: DType = "uint32"
int32: DType = "int32"
bool_: DType = "bool"
float32: DType = "float32"
tfloat32: DType = "tfloat32"
bfloat16: DType = "bfloat16"
float16: DType = "float16"
float8_e4m3: DType = "float8_e4m3"
float8_e4m3fn: DType = "float8_e4m3fn"
float8_e5m2: DType = "float8_e5m2"
float8_e8m0fnu: DType = "float8_e8m0fnu"
float8_e5m2_x4: DType = "float8_e5m2_x4"
float8_e4m3fn_x4: DType = "float8_e4m3fn_x4"
float4_e2m1fn_x4: DType = "float4_e2m1fn_x4"

NAMES: tuple[str, ...] = (
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "bool_",
    "float32",
    "tfloat32",
    "bfloat16",
    "float16",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e8m0fnu",
    "float8_e5m2_x4",
    "float8_e4m3fn_x4",
    "float4_e2m1fn_x4",
)
