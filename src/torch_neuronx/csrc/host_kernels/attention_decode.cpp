#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "host_kernels/attention_tiles.h"
#include "host_kernels/gemm_paths.h"
#include "host_kernels/scratch.h"

namespace neuron::host_kernels {
namespace {

constexpr int64_t kKeysPerBlock = 512;
constexpr int64_t kKeysPerPart = 256;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct TaskTag;
struct PartTag;

// The rows are the queries of all heads that read one key head.
class Decode {
 public:
  Decode(
      const AttentionShape& shape,
      const HeadsIn& query,
      const HeadsIn& key,
      const HeadsIn& value,
      const HeadsOut& out,
      float* log_sum_exp)
      : shape_(shape),
        query_(query),
        key_(key),
        value_(value),
        out_(out),
        log_sum_exp_(log_sum_exp),
        tools_(attention_tools({query.dtype, key.dtype})),
        group_(shape.heads / shape.kv_heads),
        rows_(group_ * shape.queries),
        row_words_(
            round_up(divide_up(shape.width, tools_.panels.steps), 16) + 16),
        part_size_(rows_ * (shape.value_width + 2)) {}

  void run() const {
    const int64_t threads =
        at::in_parallel_region() ? 1 : at::get_num_threads();
    const auto heads = shape_.batch * shape_.kv_heads;
    const auto parts =
        heads >= threads
            ? 1
            : std::clamp<int64_t>(
                  shape_.keys / kKeysPerPart, 1, divide_up(threads, heads));
    const auto part_keys = divide_up(shape_.keys, parts);
    const auto tasks = heads * parts;
    float* all_parts =
        parts == 1 ? nullptr : scratch<PartTag>(tasks * part_size_);
    const auto task_size = rows_ * (row_words_ + kKeysPerBlock) + part_size_;
    std::atomic<int64_t> next{0};
    const auto work = [&] {
      for (auto task = next++; task < tasks; task = next++) {
        auto* memory = scratch<TaskTag>(task_size);
        const auto head = task / parts;
        auto* part = parts == 1 ? memory + task_size - part_size_
                                : all_parts + task * part_size_;
        const auto begin = task % parts * part_keys;
        run_part(head, begin, begin + part_keys, memory, part);
        if (parts == 1) {
          combine(head, part, 1);
        }
      }
    };
    const auto bytes = heads * shape_.keys * shape_.width;
    if (threads == 1 || tasks == 1 || bytes < (1 << 15)) {
      work();
    } else {
      at::parallel_for(
          0, std::min(threads, tasks), 1, [&](int64_t, int64_t) { work(); });
    }
    if (parts > 1) {
      for (int64_t head = 0; head < heads; ++head) {
        combine(head, all_parts + head * parts * part_size_, parts);
      }
    }
  }

 private:
  // Unnormalised output, then maximum (log2) and sum per row.
  void run_part(
      int64_t head,
      int64_t begin,
      int64_t end,
      float* memory,
      float* part) const {
    const auto batch = head / shape_.kv_heads;
    const auto kv_head = head % shape_.kv_heads;
    auto* words = memory;
    auto* scores = words + rows_ * row_words_;
    auto* maximum = part + rows_ * shape_.value_width;
    auto* sum = maximum + rows_;
    std::fill_n(part, rows_ * shape_.value_width, 0.0f);
    std::fill_n(maximum, rows_, kMinusInfinity);
    std::fill_n(sum, rows_, 0.0f);
    for (int64_t g = 0; g < group_; ++g) {
      tools_.panels.copy_rows(
          head_rows(
              query_,
              batch,
              kv_head * group_ + g,
              0,
              shape_.queries,
              shape_.width),
          words + g * shape_.queries * row_words_,
          row_words_);
    }
    const auto span = visible_keys(shape_, batch, 0, shape_.queries);
    begin = std::max(begin, span.begin);
    end = std::min(end, span.end);
    for (auto key = begin; key < end; key += kKeysPerBlock) {
      run_block(
          batch,
          kv_head,
          key,
          std::min(kKeysPerBlock, end - key),
          words,
          scores,
          part);
    }
  }

  void run_block(
      int64_t batch,
      int64_t kv_head,
      int64_t key,
      int64_t keys,
      const float* words,
      float* scores,
      float* part) const {
    const auto width = shape_.value_width;
    auto* maximum = part + rows_ * width;
    auto* sum = maximum + rows_;
    const auto k = head_rows(key_, batch, kv_head, key, keys, shape_.width);
    std::fill_n(scores, rows_ * kKeysPerBlock, 0.0f);
    tools_.panels.skinny_dot(
        {words,
         row_words_,
         rows_,
         k.data,
         k.dtype,
         1,
         k.row_stride,
         keys,
         shape_.width,
         scores,
         kKeysPerBlock});
    for (int64_t row = 0; row < rows_; ++row) {
      auto* of_row = scores + row * kKeysPerBlock;
      const auto scale = mask_row(
          batch,
          kv_head * group_ + row / shape_.queries,
          row % shape_.queries,
          key,
          keys,
          of_row);
      const auto before = maximum[row];
      const auto more =
          tools_.attention.softmax_row(of_row, keys, scale, &maximum[row]);
      const auto correction =
          before == kMinusInfinity ? 0.0f : std::exp2(before - maximum[row]);
      sum[row] = sum[row] * correction + more;
      if (correction != 1.0f) {
        for (int64_t d = 0; d < width; ++d) {
          part[row * width + d] *= correction;
        }
      }
    }
    const auto v = head_rows(value_, batch, kv_head, key, keys, width);
    tools_.gemm.fp32.skinny_axpy(
        {scores,
         kKeysPerBlock,
         rows_,
         v.data,
         v.dtype,
         v.row_stride,
         1,
         width,
         keys,
         part,
         width});
  }

  // Masks one row of raw products; returns the exponent's remaining scale.
  float mask_row(
      int64_t batch,
      int64_t head,
      int64_t query,
      int64_t key,
      int64_t keys,
      float* scores) const {
    const auto& mask = shape_.mask;
    float scale = shape_.scale;
    if (mask.data != nullptr) {
      const bool boolean = mask.dtype == c10::ScalarType::Bool;
      const auto dtype = boolean ? c10::ScalarType::Char : mask.dtype;
      const auto offset = batch * mask.batch_stride + head * mask.head_stride +
                          query * mask.query_stride + key * mask.key_stride;
      float values[kKeysPerBlock + 32];
      tools_.gemm.fp32.copy_rows(
          {advance(mask.data, dtype, offset),
           dtype,
           0,
           mask.key_stride,
           1,
           keys},
          values,
          round_up(keys, 16) + 16);
      for (int64_t j = 0; j < keys; ++j) {
        scores[j] = boolean ? (values[j] == 0.0f ? kMinusInfinity : scores[j])
                            : scores[j] * scale + values[j];
      }
      scale = boolean ? scale : 1.0f;
    }
    const auto first =
        std::clamp<int64_t>(shape_.visible.first + query - key, 0, keys);
    const auto last =
        std::clamp<int64_t>(shape_.visible.last + query - key, -1, keys - 1);
    std::fill(scores, scores + first, kMinusInfinity);
    std::fill(scores + last + 1, scores + keys, kMinusInfinity);
    return scale * kLog2OfE;
  }

  void combine(int64_t head, float* parts, int64_t count) const {
    const auto width = shape_.value_width;
    const auto batch = head / shape_.kv_heads;
    const auto first_head = head % shape_.kv_heads * group_;
    for (int64_t row = 0; row < rows_; ++row) {
      const auto of_head = first_head + row / shape_.queries;
      const auto query = row % shape_.queries;
      const auto maximum_at = rows_ * width + row;
      const auto sum_at = maximum_at + rows_;
      float top = shape_.sinks == nullptr ? kMinusInfinity
                                          : shape_.sinks[of_head] * kLog2OfE;
      float sum = shape_.sinks == nullptr ? 0.0f : 1.0f;
      const auto sink = top;
      for (int64_t p = 0; p < count; ++p) {
        top = std::max(top, parts[p * part_size_ + maximum_at]);
      }
      const auto weight = [&](float maximum) {
        return maximum == kMinusInfinity ? 0.0f : std::exp2(maximum - top);
      };
      sum *= weight(sink);
      auto* total = parts + row * width;
      for (int64_t p = 0; p < count; ++p) {
        const auto* part = parts + p * part_size_;
        const auto share = weight(part[maximum_at]);
        sum += share * part[sum_at];
        for (int64_t d = 0; d < width; ++d) {
          const auto x = share * part[row * width + d];
          total[d] = p == 0 ? x : total[d] + x;
        }
      }
      if (log_sum_exp_ != nullptr) {
        log_sum_exp_
            [(batch * shape_.heads + of_head) * shape_.queries + query] =
                top / kLog2OfE + std::log(sum);
      }
      const auto offset = batch * out_.batch_stride +
                          of_head * out_.head_stride + query * out_.row_stride;
      Epilogue epilogue{
          const_cast<void*>(advance(out_.data, out_.dtype, offset)),
          out_.dtype,
          0,
          1};
      epilogue.alpha = sum == 0.0f ? 0.0f : 1.0f / sum;
      tools_.gemm.finish({total, width, 0, 0, 1, width}, epilogue);
    }
  }

  const AttentionShape& shape_;
  const HeadsIn& query_;
  const HeadsIn& key_;
  const HeadsIn& value_;
  const HeadsOut& out_;
  float* const log_sum_exp_;
  const AttentionTools tools_;
  const int64_t group_;
  const int64_t rows_;
  const int64_t row_words_;
  const int64_t part_size_;
};

}  // namespace

void attention_decode(
    const AttentionShape& shape,
    const HeadsIn& query,
    const HeadsIn& key,
    const HeadsIn& value,
    const HeadsOut& out,
    float* log_sum_exp) {
  Decode(shape, query, key, value, out, log_sum_exp).run();
}

}  // namespace neuron::host_kernels
