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

// Panels that share a packed block of keys and values.
constexpr int64_t kPanelsPerTask = 8;
constexpr int64_t kKeysPerBlock = 112;

struct ForwardTag;

// The memory of one task: state per panel, then what they share.
struct Layout {
  int64_t query_size;
  int64_t output_size;
  int64_t panel_size;
  int64_t key_stride;
  int64_t value_stride;
  int64_t key_at;
  int64_t value_at;
  int64_t scores_at;
  int64_t mask_at;
  int64_t size;

  Layout(const AttentionShape& shape, const AttentionTools& tools) {
    const int64_t columns = tools.gemm.panel_columns;
    const int64_t rows = tools.gemm.panel_rows;
    const auto steps = tools.panels.steps;
    query_size = divide_up(shape.width, steps) * columns + kPanelMargin;
    output_size = shape.value_width * columns;
    panel_size = query_size + output_size + 2 * columns;
    key_stride = divide_up(shape.width, steps) * rows + kPanelMargin;
    value_stride = divide_up(kKeysPerBlock, steps) * rows + kPanelMargin;
    key_at = kPanelsPerTask * panel_size;
    value_at =
        key_at +
        round_up(divide_up(kKeysPerBlock, rows) * key_stride, kPanelMargin);
    scores_at =
        value_at +
        round_up(
            divide_up(shape.value_width, rows) * value_stride, kPanelMargin);
    mask_at = scores_at + kKeysPerBlock * columns + kPanelMargin;
    size = mask_at + kKeysPerBlock * columns + kPanelMargin;
  }
};

struct Panel : QueryPanel {
  KeySpan keys;
  float* query_words;
  float* output;
  float* maximum;
  float* sum;
};

class Forward {
 public:
  Forward(
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
        tools_(attention_tools({query.dtype, key.dtype, value.dtype})),
        layout_(shape, tools_),
        group_(shape.heads / shape.kv_heads),
        panels_per_head_(divide_up(shape.queries, tools_.gemm.panel_columns)) {}

  void run() const {
    const auto per_kv_head = panels_per_head_ * group_;
    const int64_t threads =
        at::in_parallel_region() ? 1 : at::get_num_threads();
    // Enough tasks for every thread, even if that packs keys more often.
    const auto panels = shape_.batch * shape_.kv_heads * per_kv_head;
    const auto per_task = std::clamp<int64_t>(
        panels / (4 * threads), 1, std::min(kPanelsPerTask, per_kv_head));
    const auto tasks_per_kv_head = divide_up(per_kv_head, per_task);
    const auto tasks = shape_.batch * shape_.kv_heads * tasks_per_kv_head;
    std::atomic<int64_t> next{0};
    at::parallel_for(0, std::min(threads, tasks), 1, [&](int64_t, int64_t) {
      for (auto task = next++; task < tasks; task = next++) {
        // Late queries see most keys when attention is causal: first.
        const auto part = tasks_per_kv_head - 1 - task % tasks_per_kv_head;
        const auto kv_head = task / tasks_per_kv_head % shape_.kv_heads;
        const auto batch = task / tasks_per_kv_head / shape_.kv_heads;
        const auto begin = part * per_task;
        run_panels(
            batch, kv_head, begin, std::min(begin + per_task, per_kv_head));
      }
    });
  }

 private:
  Panel start_panel(
      int64_t batch, int64_t kv_head, int64_t index, float* memory) const {
    const int64_t columns = tools_.gemm.panel_columns;
    Panel panel;
    panel.batch = batch;
    panel.head = kv_head * group_ + index % group_;
    panel.query = index / group_ * columns;
    panel.queries = std::min(columns, shape_.queries - panel.query);
    panel.keys = visible_keys(shape_, batch, panel.query, panel.queries);
    panel.query_words = memory;
    panel.output = memory + layout_.query_size;
    panel.maximum = panel.output + layout_.output_size;
    panel.sum = panel.maximum + columns;
    tools_.panels.pack(
        head_rows(
            query_,
            batch,
            panel.head,
            panel.query,
            panel.queries,
            shape_.width),
        columns,
        panel.query_words,
        0);
    std::fill_n(panel.output, layout_.output_size, 0.0f);
    const bool sink = shape_.sinks != nullptr;
    std::fill_n(
        panel.maximum,
        columns,
        sink ? shape_.sinks[panel.head] * kLog2OfE
             : -std::numeric_limits<float>::infinity());
    std::fill_n(panel.sum, columns, sink ? 1.0f : 0.0f);
    return panel;
  }

  void run_panels(
      int64_t batch, int64_t kv_head, int64_t begin, int64_t end) const {
    auto* memory = scratch<ForwardTag>(layout_.size);
    Panel panels[kPanelsPerTask];
    const auto count = end - begin;
    KeySpan all{shape_.keys, 0};
    for (int64_t p = 0; p < count; ++p) {
      panels[p] = start_panel(
          batch, kv_head, begin + p, memory + p * layout_.panel_size);
      all.begin = std::min(all.begin, panels[p].keys.begin);
      all.end = std::max(all.end, panels[p].keys.end);
    }
    for (auto key = all.begin; key < all.end; key += kKeysPerBlock) {
      const auto keys = std::min(kKeysPerBlock, all.end - key);
      pack_keys(batch, kv_head, key, keys, memory);
      for (int64_t p = 0; p < count; ++p) {
        // Later keys of the block may be hidden from this panel.
        const auto seen = std::min(keys, panels[p].keys.end - key);
        if (seen > 0 && key + keys > panels[p].keys.begin) {
          run_block(panels[p], key, seen, memory);
        }
      }
    }
    for (int64_t p = 0; p < count; ++p) {
      finish_panel(panels[p]);
    }
  }

  void pack_keys(
      int64_t batch,
      int64_t kv_head,
      int64_t key,
      int64_t keys,
      float* memory) const {
    tools_.panels.pack(
        head_rows(key_, batch, kv_head, key, keys, shape_.width),
        tools_.gemm.panel_rows,
        memory + layout_.key_at,
        layout_.key_stride);
    tools_.panels.pack(
        swapped(
            head_rows(value_, batch, kv_head, key, keys, shape_.value_width)),
        tools_.gemm.panel_rows,
        memory + layout_.value_at,
        layout_.value_stride);
  }

  void run_block(
      const Panel& panel, int64_t key, int64_t seen, float* memory) const {
    const int64_t columns = tools_.gemm.panel_columns;
    const auto steps = tools_.panels.steps;
    auto* scores = memory + layout_.scores_at;
    tools_.panels.multiply(
        {memory + layout_.key_at,
         panel.query_words,
         layout_.key_stride,
         0,
         divide_up(shape_.width, steps)},
        {scores, columns, 0, 0, seen, columns},
        false,
        nullptr);
    const ScoreBlock block{scores, seen};
    const auto log2_scale = mask_scores(
        shape_, tools_, panel, key, block, memory + layout_.mask_at);
    tools_.words.softmax_columns(
        block,
        log2_scale,
        {panel.maximum, panel.sum, panel.output, shape_.value_width});
    tools_.panels.multiply(
        {memory + layout_.value_at,
         scores,
         layout_.value_stride,
         0,
         divide_up(seen, steps)},
        {panel.output, columns, 0, 0, shape_.value_width, columns},
        true,
        nullptr);
  }

  void finish_panel(const Panel& panel) const {
    for (int64_t c = 0; c < panel.queries; ++c) {
      const auto sum = panel.sum[c];
      if (log_sum_exp_ != nullptr) {
        const auto row =
            (panel.batch * shape_.heads + panel.head) * shape_.queries;
        log_sum_exp_[row + panel.query + c] =
            panel.maximum[c] / kLog2OfE + std::log(sum);
      }
      panel.sum[c] = sum == 0.0f ? 0.0f : 1.0f / sum;
    }
    const auto offset = panel.batch * out_.batch_stride +
                        panel.head * out_.head_stride +
                        panel.query * out_.row_stride;
    Epilogue epilogue{
        const_cast<void*>(advance(out_.data, out_.dtype, offset)),
        out_.dtype,
        1,
        out_.row_stride};
    epilogue.alpha = 1.0f;
    epilogue.column_scale = panel.sum;
    tools_.gemm.finish(
        {panel.output,
         tools_.gemm.panel_columns,
         0,
         0,
         shape_.value_width,
         panel.queries},
        epilogue);
  }

  const AttentionShape& shape_;
  const HeadsIn& query_;
  const HeadsIn& key_;
  const HeadsIn& value_;
  const HeadsOut& out_;
  float* const log_sum_exp_;
  const AttentionTools tools_;
  const Layout layout_;
  const int64_t group_;
  const int64_t panels_per_head_;
};

}  // namespace

void attention_forward(
    const AttentionShape& shape,
    const HeadsIn& query,
    const HeadsIn& key,
    const HeadsIn& value,
    const HeadsOut& out,
    float* log_sum_exp) {
  for (const auto dtype : {query.dtype, key.dtype, value.dtype}) {
    TORCH_CHECK_VALUE(
        gemm_takes(dtype),
        "Attention has an operand of dtype ",
        dtype,
        ". It takes float32, bfloat16, float16, float8_e4m3fn, float8_e5m2 "
        "and int8; convert the operand first.");
  }
  if (shape.batch == 0 || shape.heads == 0 || shape.queries == 0 ||
      shape.value_width == 0) {
    return;
  }
  if (shape.queries <= kDecodeQueries) {
    attention_decode(shape, query, key, value, out, log_sum_exp);
  } else {
    Forward(shape, query, key, value, out, log_sum_exp).run();
  }
}

}  // namespace neuron::host_kernels
