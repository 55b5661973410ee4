#include "host_kernels/indexing.h"

#include <atomic>
#include <cstring>

#include "host_kernels/parallel.h"

namespace neuron::host_kernels {
namespace {

// Keeps the smallest position that was reported.
class FirstBad {
 public:
  void report(int64_t position) {
    auto seen = position_.load();
    while ((seen < 0 || position < seen) &&
           !position_.compare_exchange_weak(seen, position)) {
    }
  }
  int64_t position() const { return position_.load(); }

 private:
  std::atomic<int64_t> position_{-1};
};

template <class T>
bool gather_rows(
    const Gather& work, int64_t begin, int64_t end, FirstBad& bad) {
  const auto* in = static_cast<const T*>(work.in);
  auto* out = static_cast<T*>(work.out);
  for (int64_t row = begin; row < end; ++row) {
    const auto* index = work.index + row * work.out_columns;
    const auto* from = in + row * work.in_columns;
    auto* to = out + row * work.out_columns;
    for (int64_t column = 0; column < work.out_columns; ++column) {
      const auto at = index[column];
      if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(work.in_columns)) {
        bad.report(row * work.out_columns + column);
        return false;
      }
      to[column] = from[at];
    }
  }
  return true;
}

struct Pair {
  uint64_t first;
  uint64_t second;
};

}  // namespace

int64_t index_at(const TakeRows& take, int64_t i) {
  return take.index_is_long ? static_cast<const int64_t*>(take.index)[i]
                            : static_cast<const int32_t*>(take.index)[i];
}

int64_t take_rows(const TakeRows& take) {
  FirstBad bad;
  constexpr int64_t grain_bytes = kGrain * 4;
  const auto part = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto row = index_at(take, i);
      row += take.wraps && row < 0 ? take.rows : 0;
      if (row < 0 || row >= take.rows) {
        bad.report(i);
        return;
      }
      std::memcpy(
          static_cast<char*>(take.out) + i * take.row_bytes,
          static_cast<const char*>(take.in) + row * take.row_bytes,
          static_cast<size_t>(take.row_bytes));
    }
  };
  if (take.count * take.row_bytes <= grain_bytes) {
    part(0, take.count);
  } else {
    at::parallel_for(
        0,
        take.count,
        std::max<int64_t>(1, grain_bytes / take.row_bytes),
        part);
  }
  return bad.position();
}

int64_t gather(const Gather& work) {
  FirstBad bad;
  in_rows(work.rows, work.out_columns, [&](int64_t begin, int64_t end) {
    switch (work.itemsize) {
      case 1:
        return gather_rows<uint8_t>(work, begin, end, bad);
      case 2:
        return gather_rows<uint16_t>(work, begin, end, bad);
      case 4:
        return gather_rows<uint32_t>(work, begin, end, bad);
      case 8:
        return gather_rows<uint64_t>(work, begin, end, bad);
      default:
        return gather_rows<Pair>(work, begin, end, bad);
    }
  });
  return bad.position();
}

}  // namespace neuron::host_kernels
