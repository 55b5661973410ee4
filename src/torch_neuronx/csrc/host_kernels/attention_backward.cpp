#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>

#include "host_kernels/attention_backward_memory.h"
#include "host_kernels/gemm.h"
#include "host_kernels/gemm_paths.h"
#include "host_kernels/scratch.h"

namespace neuron::host_kernels {
namespace {

struct TaskTag;
struct PartTag;
struct SinkTag;

class Backward {
 public:
  Backward(
      const AttentionShape& shape,
      const HeadsIn& query,
      const HeadsIn& key,
      const HeadsIn& value,
      const HeadsIn& out,
      const HeadsIn& out_gradient,
      const float* log_sum_exp,
      const AttentionGradients& gradients)
      : shape_(shape),
        query_(query),
        key_(key),
        value_(value),
        out_(out),
        out_gradient_(out_gradient),
        log_sum_exp_(log_sum_exp),
        result_(gradients),
        tools_(attention_tools(
            {query.dtype, key.dtype, value.dtype, out_gradient.dtype})),
        sizes_(shape, tools_) {}

  void run() const {
    const int64_t threads =
        at::in_parallel_region() ? 1 : at::get_num_threads();
    const auto heads = shape_.batch * shape_.kv_heads;
    const auto blocks = divide_up(shape_.keys, kBackwardKeys);
    // Few heads: several tasks share one, each with some of its keys.
    const auto parts =
        std::max<int64_t>(1, std::min(divide_up(threads, heads), blocks));
    const auto tasks = heads * parts;
    float* query_parts =
        parts == 1 ? nullptr : scratch<PartTag>(tasks * sizes_.query_gradients);
    float* sinks = result_.sinks == nullptr
                       ? nullptr
                       : scratch<SinkTag>(shape_.batch * shape_.heads);
    std::atomic<int64_t> next{0};
    at::parallel_for(0, std::min(threads, tasks), 1, [&](int64_t, int64_t) {
      for (auto task = next++; task < tasks; task = next++) {
        run_task(
            task / parts,
            task % parts,
            parts,
            query_parts == nullptr
                ? nullptr
                : query_parts + task * sizes_.query_gradients,
            sinks);
      }
    });
    for (int64_t head = 0; parts > 1 && head < heads; ++head) {
      auto* total = query_parts + head * parts * sizes_.query_gradients;
      for (int64_t part = 1; part < parts; ++part) {
        for (int64_t i = 0; i < sizes_.query_gradients; ++i) {
          total[i] += total[part * sizes_.query_gradients + i];
        }
      }
      write_query_gradients(head, total);
    }
    for (int64_t h = 0; sinks != nullptr && h < shape_.heads; ++h) {
      result_.sinks[h] = 0.0f;
      for (int64_t b = 0; b < shape_.batch; ++b) {
        result_.sinks[h] += sinks[b * shape_.heads + h];
      }
    }
  }

 private:
  void run_task(
      int64_t head_index,
      int64_t part,
      int64_t parts,
      float* query_gradients,
      float* sinks) const {
    Arena counting(nullptr);
    take_backward_memory(counting, shape_, tools_, sizes_, query_gradients);
    Arena arena(scratch<TaskTag>(counting.used()));
    const auto m =
        take_backward_memory(arena, shape_, tools_, sizes_, query_gradients);
    const auto batch = head_index / shape_.kv_heads;
    const auto kv_head = head_index % shape_.kv_heads;
    std::fill_n(m.query_gradients, sizes_.query_gradients, 0.0f);
    for (int64_t g = 0; g < sizes_.group; ++g) {
      const auto head = kv_head * sizes_.group + g;
      const auto sink_gradient = prepare_queries(
          shape_,
          tools_,
          sizes_,
          m,
          out_,
          out_gradient_,
          log_sum_exp_,
          batch,
          head,
          g);
      if (sinks != nullptr && part == 0) {
        sinks[batch * shape_.heads + head] = sink_gradient;
      }
    }
    const auto blocks = divide_up(shape_.keys, kBackwardKeys);
    for (auto block = part; block < blocks; block += parts) {
      const auto key = block * kBackwardKeys;
      const auto keys = std::min(kBackwardKeys, shape_.keys - key);
      run_keys(batch, kv_head, key, keys, m);
    }
    if (parts == 1) {
      write_query_gradients(head_index, m.query_gradients);
    }
  }

  void run_keys(
      int64_t batch,
      int64_t kv_head,
      int64_t key,
      int64_t keys,
      const BackwardMemory& m) const {
    const auto k = head_rows(key_, batch, kv_head, key, keys, shape_.width);
    m.keys.fill(tools_.panels, k);
    m.keys_by_width.fill(tools_.panels, swapped(k));
    m.values.fill(
        tools_.panels,
        head_rows(value_, batch, kv_head, key, keys, shape_.value_width));
    std::fill_n(m.key_gradients, keys * sizes_.padded_width, 0.0f);
    std::fill_n(m.value_gradients, keys * sizes_.padded_value_width, 0.0f);
    for (int64_t g = 0; g < sizes_.group; ++g) {
      for (int64_t q = 0; q < shape_.queries; q += sizes_.chunk) {
        const auto queries = std::min(sizes_.chunk, shape_.queries - q);
        const auto span = visible_keys(shape_, batch, q, queries);
        const auto seen = std::min(keys, span.end - key);
        if (seen > 0 && key + keys > span.begin) {
          run_chunk(
              {batch, kv_head * sizes_.group + g, q, queries}, g, key, seen, m);
        }
      }
    }
    write_rows(
        result_.key,
        batch,
        kv_head,
        key,
        keys,
        m.key_gradients,
        sizes_.padded_width,
        shape_.width);
    write_rows(
        result_.value,
        batch,
        kv_head,
        key,
        keys,
        m.value_gradients,
        sizes_.padded_value_width,
        shape_.value_width);
  }

  // The queries of one chunk against keys [key, key + seen).
  void run_chunk(
      const QueryPanel& chunk,
      int64_t g,
      int64_t key,
      int64_t seen,
      const BackwardMemory& m) const {
    const auto q = head_rows(
        query_,
        chunk.batch,
        chunk.head,
        chunk.query,
        chunk.queries,
        shape_.width);
    const auto dout = head_rows(
        out_gradient_,
        chunk.batch,
        chunk.head,
        chunk.query,
        chunk.queries,
        shape_.value_width);
    m.queries.fill(tools_.panels, q);
    m.out_gradients.fill(tools_.panels, dout);
    m.queries_by_width.fill(tools_.panels, swapped(q));
    m.out_gradients_by_width.fill(tools_.panels, swapped(dout));
    for (int64_t p = 0; p * sizes_.columns < chunk.queries; ++p) {
      run_panel(
          {chunk.batch,
           chunk.head,
           chunk.query + p * sizes_.columns,
           std::min(sizes_.columns, chunk.queries - p * sizes_.columns)},
          p,
          g,
          key,
          seen,
          m);
    }
    add_product(
        m.probability_rows,
        m.probabilities,
        m.out_gradients_by_width,
        seen,
        chunk.queries,
        shape_.value_width,
        m.value_gradients,
        sizes_.padded_value_width);
    add_product(
        m.gradient_rows,
        m.score_gradients,
        m.queries_by_width,
        seen,
        chunk.queries,
        shape_.width,
        m.key_gradients,
        sizes_.padded_width);
  }

  void run_panel(
      const QueryPanel& panel,
      int64_t index,
      int64_t g,
      int64_t key,
      int64_t seen,
      const BackwardMemory& m) const {
    const auto steps = tools_.panels.steps;
    const auto product = [&](const Packed& left,
                             const Packed& right,
                             int64_t depth,
                             float* out) {
      tools_.panels.multiply(
          {left.panels,
           right.panels + index * right.stride,
           left.stride,
           0,
           divide_up(depth, steps)},
          {out, sizes_.columns, 0, 0, seen, sizes_.columns},
          false,
          nullptr);
    };
    product(m.keys, m.queries, shape_.width, m.scores);
    product(m.values, m.out_gradients, shape_.value_width, m.gradients);
    const auto log2_scale =
        mask_scores(shape_, tools_, panel, key, {m.scores, seen}, m.mask);
    const auto rows_at = [&](float* rows) -> void* {
      return steps == 2 ? static_cast<void*>(
                              reinterpret_cast<c10::BFloat16*>(rows) +
                              index * sizes_.columns)
                        : rows + index * sizes_.columns;
    };
    const auto query_at = g * sizes_.padded_queries + panel.query;
    tools_.words.score_gradients(
        {m.scores,
         m.gradients,
         rows_at(m.probability_rows),
         rows_at(m.gradient_rows),
         sizes_.chunk,
         seen,
         shape_.scale,
         log2_scale,
         m.log_sum_exp + query_at,
         m.delta + query_at});
    auto* query_gradients = m.query_gradients + query_at / sizes_.columns *
                                                    shape_.width *
                                                    sizes_.columns;
    tools_.panels.multiply(
        {m.keys_by_width.panels,
         m.gradients,
         m.keys_by_width.stride,
         0,
         divide_up(seen, steps)},
        {query_gradients, sizes_.columns, 0, 0, shape_.width, sizes_.columns},
        true,
        nullptr);
  }

  // sums[seen][width] += rows[seen][queries] * right[queries][width]
  void add_product(
      const float* rows,
      const Packed& left,
      const Packed& right,
      int64_t seen,
      int64_t queries,
      int64_t width,
      float* sums,
      int64_t stride) const {
    const auto steps = tools_.panels.steps;
    const auto dtype =
        steps == 2 ? c10::ScalarType::BFloat16 : c10::ScalarType::Float;
    left.fill(tools_.panels, {rows, dtype, sizes_.chunk, 1, seen, queries});
    tools_.panels.multiply(
        {left.panels,
         right.panels,
         left.stride,
         right.stride,
         divide_up(queries, steps)},
        {sums, stride, 0, 0, seen, width},
        true,
        nullptr);
  }

  void write_rows(
      const HeadsOut& out,
      int64_t batch,
      int64_t head,
      int64_t row,
      int64_t rows,
      float* sums,
      int64_t stride,
      int64_t width) const {
    const auto offset = batch * out.batch_stride + head * out.head_stride +
                        row * out.row_stride;
    Epilogue epilogue{
        const_cast<void*>(advance(out.data, out.dtype, offset)),
        out.dtype,
        out.row_stride,
        1};
    epilogue.alpha = 1.0f;
    tools_.gemm.finish({sums, stride, 0, 0, rows, width}, epilogue);
  }

  void write_query_gradients(int64_t head_index, float* gradients) const {
    const auto batch = head_index / shape_.kv_heads;
    const auto first_head = head_index % shape_.kv_heads * sizes_.group;
    const auto& out = result_.query;
    for (int64_t p = 0; p < sizes_.group * sizes_.head_panels; ++p) {
      const auto query = p % sizes_.head_panels * sizes_.columns;
      const auto offset =
          batch * out.batch_stride +
          (first_head + p / sizes_.head_panels) * out.head_stride +
          query * out.row_stride;
      Epilogue epilogue{
          const_cast<void*>(advance(out.data, out.dtype, offset)),
          out.dtype,
          1,
          out.row_stride};
      epilogue.alpha = 1.0f;
      tools_.gemm.finish(
          {gradients + p * shape_.width * sizes_.columns,
           sizes_.columns,
           0,
           0,
           shape_.width,
           std::min(sizes_.columns, shape_.queries - query)},
          epilogue);
    }
  }

  const AttentionShape& shape_;
  const HeadsIn& query_;
  const HeadsIn& key_;
  const HeadsIn& value_;
  const HeadsIn& out_;
  const HeadsIn& out_gradient_;
  const float* const log_sum_exp_;
  const AttentionGradients& result_;
  const AttentionTools tools_;
  const BackwardSizes sizes_;
};

}  // namespace

void attention_backward(
    const AttentionShape& shape,
    const HeadsIn& query,
    const HeadsIn& key,
    const HeadsIn& value,
    const HeadsIn& out,
    const HeadsIn& out_gradient,
    const float* log_sum_exp,
    const AttentionGradients& gradients) {
  for (const auto dtype :
       {gradients.query.dtype, gradients.key.dtype, gradients.value.dtype}) {
    TORCH_CHECK_VALUE(
        gemm_gives(dtype),
        "A gradient of attention has dtype ",
        dtype,
        ". It must be float32, bfloat16 or float16.");
  }
  if (shape.batch == 0 || shape.heads == 0) {
    return;
  }
  Backward(shape, query, key, value, out, out_gradient, log_sum_exp, gradients)
      .run();
}

}  // namespace neuron::host_kernels
