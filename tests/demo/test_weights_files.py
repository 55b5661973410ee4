"""Reading of CTranslate2's arrays and their way into Whisper."""

from __future__ import annotations

import struct

import numpy as np
import pytest

pytest.importorskip("transformers", reason="the demo's requirements are not installed")

from examples.demo import whisper_weights
from examples.demo.ctranslate2_file import read_arrays
from examples.demo.errors import DemoError


def text(value: str) -> bytes:
    raw = value.encode() + b"\0"
    return struct.pack("<H", len(raw)) + raw


def model_bin(arrays: dict[str, np.ndarray], aliases: dict[str, str], *, version: int = 6) -> bytes:
    numbers = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}
    data = struct.pack("<I", version) + text("WhisperSpec") + struct.pack("<I", 3)
    data += struct.pack("<I", len(arrays))
    for name, array in arrays.items():
        data += text(name) + struct.pack("<B", array.ndim)
        data += struct.pack(f"<{array.ndim}I", *array.shape)
        data += struct.pack("<BI", numbers[array.dtype.name], array.nbytes) + array.tobytes()
    data += struct.pack("<I", len(aliases))
    for alias, name in aliases.items():
        data += text(alias) + text(name)
    return data


def test_arrays_come_back_with_shape_dtype_and_alias():
    weight = np.arange(6, dtype=np.float16).reshape(2, 3)
    heads = np.array(8, dtype=np.int16)
    found = read_arrays(model_bin({"weight": weight, "heads": heads}, {"same": "weight"}))
    assert list(found) == ["weight", "heads", "same"]
    assert found["weight"].dtype == np.float16
    np.testing.assert_array_equal(found["same"], weight)
    assert found["heads"].shape == ()
    assert int(found["heads"]) == 8


def test_a_cut_file_is_refused_with_the_bytes_that_are_missing():
    data = model_bin({"weight": np.zeros(100, dtype=np.float32)}, {})
    with pytest.raises(DemoError, match="ends at byte"):
        read_arrays(data[:-50])


def test_an_unknown_layout_is_refused():
    with pytest.raises(DemoError, match="layout version 7"):
        read_arrays(model_bin({}, {}, version=7))


WIDTH = 4


def whisper_arrays() -> dict[str, np.ndarray]:
    """The names and shapes of Whisper-base, with a different value in every piece."""
    width, wide = WIDTH, 4 * WIDTH
    arrays: dict[str, np.ndarray] = {}

    def linear(name: str, rows: int, columns: int) -> None:
        arrays[f"{name}/weight"] = np.arange(rows * columns, dtype=np.float32).reshape(rows, -1)
        arrays[f"{name}/bias"] = np.arange(rows, dtype=np.float32)

    def norm(name: str) -> None:
        arrays[f"{name}/gamma"] = np.ones(width, dtype=np.float32)
        arrays[f"{name}/beta"] = np.zeros(width, dtype=np.float32)

    for side in ("encoder", "decoder"):
        arrays[f"{side}/position_encodings/encodings"] = np.ones((4, width), dtype=np.float32)
        norm(f"{side}/layer_norm")
        for number in range(whisper_weights.NUM_LAYERS):
            layer = f"{side}/layer_{number}"
            linear(f"{layer}/self_attention/linear_0", 3 * width, width)
            arrays[f"{layer}/self_attention/linear_0/bias"][width : 2 * width] = 0
            linear(f"{layer}/self_attention/linear_1", width, width)
            norm(f"{layer}/self_attention/layer_norm")
            if side == "decoder":
                linear(f"{layer}/attention/linear_0", width, width)
                linear(f"{layer}/attention/linear_1", 2 * width, width)
                arrays[f"{layer}/attention/linear_1/bias"][:width] = 0
                linear(f"{layer}/attention/linear_2", width, width)
                norm(f"{layer}/attention/layer_norm")
            linear(f"{layer}/ffn/linear_0", wide, width)
            linear(f"{layer}/ffn/linear_1", width, wide)
            norm(f"{layer}/ffn/layer_norm")
    for number in (1, 2):
        linear(f"encoder/conv{number}", width, width)
    arrays["decoder/embeddings/weight"] = np.ones((3, width), dtype=np.float32)
    arrays["decoder/projection/weight"] = arrays["decoder/embeddings/weight"]
    return arrays


def test_packed_projections_are_split_into_query_key_and_value():
    arrays = whisper_arrays()
    found = whisper_weights.state_dict(arrays)
    packed = arrays["encoder/layer_0/self_attention/linear_0/weight"]
    attention = "model.encoder.layers.0.self_attn"
    np.testing.assert_array_equal(found[f"{attention}.q_proj.weight"], packed[:WIDTH])
    np.testing.assert_array_equal(found[f"{attention}.k_proj.weight"], packed[WIDTH : 2 * WIDTH])
    np.testing.assert_array_equal(found[f"{attention}.v_proj.weight"], packed[2 * WIDTH :])
    assert f"{attention}.k_proj.bias" not in found


def test_every_parameter_of_whisper_is_found_under_its_name():
    from torch import nn
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=3,
        d_model=WIDTH,
        encoder_layers=whisper_weights.NUM_LAYERS,
        decoder_layers=whisper_weights.NUM_LAYERS,
        encoder_attention_heads=1,
        decoder_attention_heads=1,
        encoder_ffn_dim=4 * WIDTH,
        decoder_ffn_dim=4 * WIDTH,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    model: nn.Module = WhisperForConditionalGeneration(config)
    assert set(whisper_weights.state_dict(whisper_arrays())) == set(model.state_dict())


def test_a_bias_for_keys_is_refused():
    arrays = whisper_arrays()
    arrays["decoder/layer_3/attention/linear_1/bias"][0] = 1
    with pytest.raises(AssertionError, match="decoder/layer_3/attention/linear_1"):
        whisper_weights.state_dict(arrays)
