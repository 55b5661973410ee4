#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "host_kernels/attention_tiles.h"
#include "host_kernels/gemm.h"
#include "host_kernels/gemm_paths.h"
#include "host_kernels/scratch.h"

namespace neuron::host_kernels {
namespace {

// Query panels whose probabilities are summed over in one product.
constexpr int64_t kPanelsPerChunk = 4;
constexpr int64_t kKeysPerBlock = 112;

struct TaskTag;
struct PartTag;
struct SinkTag;

// Hands out the memory of one task; a first pass with null counts it.
class Arena {
 public:
  explicit Arena(float* memory) : memory_(memory) {}
  float* take(int64_t count) {
    auto* taken = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += round_up(count + kPanelMargin, kPanelMargin);
    return taken;
  }
  int64_t used() const { return used_; }

 private:
  float* memory_;
  int64_t used_ = 0;
};

// A packed operand: panels of `width` rows.
struct Packed {
  float* panels;
  int64_t stride;
  int64_t width;

  static Packed take(
      Arena& arena, int64_t rows, int64_t depth, int64_t width, int steps) {
    const auto stride = divide_up(depth, steps) * width + kPanelMargin;
    return {arena.take(divide_up(rows, width) * stride), stride, width};
  }
  void fill(const PanelKernels& kernels, const PackSource& source) const {
    kernels.pack(source, static_cast<int>(width), panels, stride);
  }
};

struct Memory {
  // Of a block of keys.
  Packed keys;           // rows: keys
  Packed keys_by_width;  // rows: width
  Packed values;
  float* key_gradients;  // fp32 [keys][whole panels]
  float* value_gradients;
  // Of a chunk of queries.
  Packed queries;  // columns: queries
  Packed out_gradients;
  Packed queries_by_width;  // columns: width
  Packed out_gradients_by_width;
  Packed probabilities;  // rows: keys, depth: queries
  Packed score_gradients;
  float* probability_rows;
  float* gradient_rows;
  // Of one panel.
  float* scores;
  float* gradients;
  float* mask;
  // Of all queries of the heads of one key head.
  float* log_sum_exp;
  float* delta;
  float* query_gradients;  // per panel: width x panel columns
  float* line;             // one converted row of output and its gradient
};

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
        columns_(tools_.gemm.panel_columns),
        chunk_(kPanelsPerChunk * columns_),
        group_(shape.heads / shape.kv_heads),
        head_panels_(divide_up(shape.queries, columns_)),
        padded_queries_(head_panels_ * columns_),
        padded_width_(round_up(shape.width, columns_)),
        padded_value_width_(round_up(shape.value_width, columns_)),
        query_gradients_size_(group_ * head_panels_ * shape.width * columns_) {}

  void run() const {
    const int64_t threads =
        at::in_parallel_region() ? 1 : at::get_num_threads();
    const auto heads = shape_.batch * shape_.kv_heads;
    const auto blocks = divide_up(shape_.keys, kKeysPerBlock);
    // Few heads: several tasks share one, each with some of its keys.
    const auto parts =
        heads >= threads
            ? 1
            : std::clamp<int64_t>(
                  divide_up(threads, heads), 1, std::max<int64_t>(blocks, 1));
    const auto tasks = heads * parts;
    float* query_parts =
        parts == 1 ? nullptr : scratch<PartTag>(tasks * query_gradients_size_);
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
            query_parts == nullptr ? nullptr
                                   : query_parts + task * query_gradients_size_,
            sinks);
      }
    });
    for (int64_t head = 0; parts > 1 && head < heads; ++head) {
      auto* total = query_parts + head * parts * query_gradients_size_;
      for (int64_t part = 1; part < parts; ++part) {
        for (int64_t i = 0; i < query_gradients_size_; ++i) {
          total[i] += total[part * query_gradients_size_ + i];
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
  Memory take(Arena& arena, float* query_gradients) const {
    const auto steps = tools_.panels.steps;
    const auto left = [&](int64_t rows, int64_t depth) {
      return Packed::take(arena, rows, depth, tools_.gemm.panel_rows, steps);
    };
    const auto right = [&](int64_t rows, int64_t depth) {
      return Packed::take(arena, rows, depth, columns_, steps);
    };
    const auto w = shape_.width;
    const auto vw = shape_.value_width;
    Memory m;
    m.keys = left(kKeysPerBlock, w);
    m.keys_by_width = left(w, kKeysPerBlock);
    m.values = left(kKeysPerBlock, vw);
    m.key_gradients = arena.take(kKeysPerBlock * padded_width_);
    m.value_gradients = arena.take(kKeysPerBlock * padded_value_width_);
    m.queries = right(chunk_, w);
    m.out_gradients = right(chunk_, vw);
    m.queries_by_width = right(w, chunk_);
    m.out_gradients_by_width = right(vw, chunk_);
    m.probabilities = left(kKeysPerBlock, chunk_);
    m.score_gradients = left(kKeysPerBlock, chunk_);
    m.probability_rows = arena.take(kKeysPerBlock * chunk_);
    m.gradient_rows = arena.take(kKeysPerBlock * chunk_);
    m.scores = arena.take(kKeysPerBlock * columns_);
    m.gradients = arena.take(kKeysPerBlock * columns_);
    m.mask = arena.take(kKeysPerBlock * columns_);
    m.log_sum_exp = arena.take(group_ * padded_queries_);
    m.delta = arena.take(group_ * padded_queries_);
    m.line = arena.take(2 * (round_up(vw, 16) + 16));
    m.query_gradients = query_gradients == nullptr
                            ? arena.take(query_gradients_size_)
                            : query_gradients;
    return m;
  }

  void run_task(
      int64_t head_index,
      int64_t part,
      int64_t parts,
      float* query_gradients,
      float* sinks) const {
    Arena counting(nullptr);
    take(counting, query_gradients);
    Arena arena(scratch<TaskTag>(counting.used()));
    const auto m = take(arena, query_gradients);
    const auto batch = head_index / shape_.kv_heads;
    const auto kv_head = head_index % shape_.kv_heads;
    std::fill_n(m.query_gradients, query_gradients_size_, 0.0f);
    for (int64_t g = 0; g < group_; ++g) {
      prepare_queries(batch, kv_head * group_ + g, g, m, sinks);
    }
    const auto blocks = divide_up(shape_.keys, kKeysPerBlock);
    for (auto block = part; block < blocks; block += parts) {
      const auto key = block * kKeysPerBlock;
      const auto keys = std::min(kKeysPerBlock, shape_.keys - key);
      run_keys(batch, kv_head, key, keys, m);
    }
    if (parts == 1) {
      write_query_gradients(head_index, m.query_gradients);
    }
  }

  // log_sum_exp in log2 and delta of all queries of one head.
  void prepare_queries(
      int64_t batch,
      int64_t head,
      int64_t g,
      const Memory& m,
      float* sinks) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const auto vw = shape_.value_width;
    const auto stride = round_up(vw, 16) + 16;
    float sink_gradient = 0.0f;
    for (int64_t i = 0; i < padded_queries_; ++i) {
      const auto at = g * padded_queries_ + i;
      // exp2(score - inf) is zero: for padding, and where no key is seen.
      m.log_sum_exp[at] = kInfinity;
      m.delta[at] = 0.0f;
      if (i >= shape_.queries) {
        continue;
      }
      const auto lse =
          log_sum_exp_[(batch * shape_.heads + head) * shape_.queries + i];
      if (lse != -kInfinity) {
        m.log_sum_exp[at] = lse * kLog2OfE;
      }
      auto* o = m.line;
      auto* g_out = m.line + stride;
      tools_.gemm.fp32.copy_rows(
          head_rows(out_, batch, head, i, 1, vw), o, stride);
      tools_.gemm.fp32.copy_rows(
          head_rows(out_gradient_, batch, head, i, 1, vw), g_out, stride);
      float sum[8] = {};
      for (int64_t d = 0; d < stride - 8; d += 8) {
        for (int j = 0; j < 8; ++j) {
          sum[j] += o[d + j] * g_out[d + j];
        }
      }
      for (const float x : sum) {
        m.delta[at] += x;
      }
      if (sinks != nullptr) {
        sink_gradient -= std::exp(shape_.sinks[head] - lse) * m.delta[at];
      }
    }
    if (sinks != nullptr) {
      sinks[batch * shape_.heads + head] = sink_gradient;
    }
  }

  void run_keys(
      int64_t batch,
      int64_t kv_head,
      int64_t key,
      int64_t keys,
      const Memory& m) const {
    const auto k = head_rows(key_, batch, kv_head, key, keys, shape_.width);
    m.keys.fill(tools_.panels, k);
    m.keys_by_width.fill(tools_.panels, swapped(k));
    m.values.fill(
        tools_.panels,
        head_rows(value_, batch, kv_head, key, keys, shape_.value_width));
    std::fill_n(m.key_gradients, keys * padded_width_, 0.0f);
    std::fill_n(m.value_gradients, keys * padded_value_width_, 0.0f);
    for (int64_t g = 0; g < group_; ++g) {
      for (int64_t q = 0; q < shape_.queries; q += chunk_) {
        const auto queries = std::min(chunk_, shape_.queries - q);
        const auto span = visible_keys(shape_, batch, q, queries);
        const auto seen = std::min(keys, span.end - key);
        if (seen > 0 && key + keys > span.begin) {
          run_chunk({batch, kv_head * group_ + g, q, queries}, g, key, seen, m);
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
        padded_width_,
        shape_.width);
    write_rows(
        result_.value,
        batch,
        kv_head,
        key,
        keys,
        m.value_gradients,
        padded_value_width_,
        shape_.value_width);
  }

  // The queries of one chunk against keys [key, key + seen).
  void run_chunk(
      const QueryPanel& chunk,
      int64_t g,
      int64_t key,
      int64_t seen,
      const Memory& m) const {
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
    for (int64_t p = 0; p * columns_ < chunk.queries; ++p) {
      run_panel(
          {chunk.batch,
           chunk.head,
           chunk.query + p * columns_,
           std::min(columns_, chunk.queries - p * columns_)},
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
        padded_value_width_);
    add_product(
        m.gradient_rows,
        m.score_gradients,
        m.queries_by_width,
        seen,
        chunk.queries,
        shape_.width,
        m.key_gradients,
        padded_width_);
  }

  void run_panel(
      const QueryPanel& panel,
      int64_t index,
      int64_t g,
      int64_t key,
      int64_t seen,
      const Memory& m) const {
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
          {out, columns_, 0, 0, seen, columns_},
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
                              index * columns_)
                        : rows + index * columns_;
    };
    const auto query_at = g * padded_queries_ + panel.query;
    tools_.words.score_gradients(
        {m.scores,
         m.gradients,
         rows_at(m.probability_rows),
         rows_at(m.gradient_rows),
         chunk_,
         seen,
         shape_.scale,
         log2_scale,
         m.log_sum_exp + query_at,
         m.delta + query_at});
    auto* query_gradients =
        m.query_gradients + query_at / columns_ * shape_.width * columns_;
    tools_.panels.multiply(
        {m.keys_by_width.panels,
         m.gradients,
         m.keys_by_width.stride,
         0,
         divide_up(seen, steps)},
        {query_gradients, columns_, 0, 0, shape_.width, columns_},
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
    left.fill(tools_.panels, {rows, dtype, chunk_, 1, seen, queries});
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
    const auto first_head = head_index % shape_.kv_heads * group_;
    const auto& out = result_.query;
    for (int64_t p = 0; p < group_ * head_panels_; ++p) {
      const auto query = p % head_panels_ * columns_;
      const auto offset = batch * out.batch_stride +
                          (first_head + p / head_panels_) * out.head_stride +
                          query * out.row_stride;
      Epilogue epilogue{
          const_cast<void*>(advance(out.data, out.dtype, offset)),
          out.dtype,
          1,
          out.row_stride};
      epilogue.alpha = 1.0f;
      tools_.gemm.finish(
          {gradients + p * shape_.width * columns_,
           columns_,
           0,
           0,
           shape_.width,
           std::min(columns_, shape_.queries - query)},
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
  const int64_t columns_;
  const int64_t chunk_;
  const int64_t group_;
  const int64_t head_panels_;
  const int64_t padded_queries_;
  const int64_t padded_width_;
  const int64_t padded_value_width_;
  const int64_t query_gradients_size_;
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
