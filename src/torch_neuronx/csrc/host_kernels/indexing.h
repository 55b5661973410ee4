// Copies of rows and elements chosen by index.
#pragma once

#include <cstdint>

namespace neuron::host_kernels {

struct TakeRows {
  void* out;
  const void* in;
  const void* index;
  bool index_is_long;  // else int32
  int64_t count;
  int64_t rows;
  int64_t row_bytes;
  bool wraps;  // negative indices count from the end
};

int64_t index_at(const TakeRows& take, int64_t i);

// Copies row index[i] to out[i]; returns the first i out of range, or -1.
int64_t take_rows(const TakeRows& take);

struct Gather {
  void* out;
  const void* in;
  const int64_t* index;
  int64_t rows;
  int64_t in_columns;
  int64_t out_columns;
  int64_t itemsize;
};

// out[r][c] = in[r][index[r][c]]; returns the first flat position whose index
// is out of range, or -1.
int64_t gather(const Gather& work);

}  // namespace neuron::host_kernels
