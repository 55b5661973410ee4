// The parts of a matrix product that exist once per instruction set. Each runs
// on one thread; gemm.cpp cuts the product up and calls them.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace neuron::host_kernels {

// rows x depth values of one operand; depth is the dimension summed over.
struct PackSource {
  const void* data;
  c10::ScalarType dtype;
  int64_t row_stride;
  int64_t depth_stride;
  int64_t rows;
  int64_t depth;
};

// What becomes of the fp32 sums of a tile at (row, column) of the output:
// out = alpha * row_scale * column_scale * sum + beta * addend.
struct Epilogue {
  void* out;
  c10::ScalarType out_dtype;
  int64_t out_row_stride;
  int64_t out_column_stride;
  const void* addend;  // may be null; may be `out`
  c10::ScalarType addend_dtype;
  int64_t addend_row_stride;
  int64_t addend_column_stride;
  float alpha;
  float beta;
  const float* row_scale;     // may be null
  const float* column_scale;  // may be null
};

struct Tile {
  float* sums;
  int64_t stride;
  int64_t row;
  int64_t column;
  int64_t rows;
  int64_t columns;
};

// Panels of both operands, for one block of depth.
struct PackedBlock {
  const float* a;
  const float* b;
  int64_t a_panel_stride;
  int64_t b_panel_stride;
  int64_t words;  // along depth
};

// A few rows of fp32 (or bf16 pair) words against columns of a weight that is
// read once, as it lies.
struct SkinnyBlock {
  const float* a;  // rows x words, contiguous rows of a_stride words
  int64_t a_stride;
  int64_t rows;
  const void* b;
  c10::ScalarType b_dtype;
  int64_t b_depth_stride;
  int64_t b_column_stride;
  int64_t columns;
  int64_t depth;
  float* sums;  // rows x columns, added to
  int64_t sums_stride;
};

// One way to hold the packed operands.
struct PanelKernels {
  int steps;  // values along depth in one 32-bit word
  void (*pack)(
      const PackSource& source, int width, float* panels, int64_t panel_stride);
  // Rows one after the other, `stride` words apart, with zeros up to the next
  // whole vector and at least one vector more.
  void (*copy_rows)(const PackSource& source, float* words, int64_t stride);
  // sums = (accumulate ? sums : 0) + a * b, then the epilogue unless null.
  void (*multiply)(
      const PackedBlock& block,
      const Tile& tile,
      bool accumulate,
      const Epilogue* epilogue);
  // b_depth_stride must be 1.
  void (*skinny_dot)(const SkinnyBlock& block);
  // b_column_stride must be 1.
  void (*skinny_axpy)(const SkinnyBlock& block);
};

struct GemmKernels {
  int lanes;
  int panel_rows;     // width of a panel of the left operand
  int panel_columns;  // width of a panel of the right operand
  PanelKernels fp32;
  PanelKernels bf16_pairs;  // pack is null where the ISA has no such product
  void (*finish)(const Tile& tile, const Epilogue& epilogue);
};

}  // namespace neuron::host_kernels
