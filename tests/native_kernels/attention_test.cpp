#include "host_kernels/attention.h"

#include <cmath>
#include <limits>

#include "check.h"
#include "values.h"

namespace neuron::test {
namespace {

using host_kernels::AttentionShape;
using host_kernels::HeadsIn;
using host_kernels::HeadsOut;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [batch, heads, rows, width], stored as [batch, rows, heads, width] with a
// little padding.
struct Heads {
  Values values;
  int64_t batch_stride, head_stride, row_stride;

  Heads(
      ScalarType dtype,
      int64_t batch,
      int64_t heads,
      int64_t rows,
      int64_t width)
      : values(dtype, batch * rows * heads * (width + 3) + 8),
        batch_stride(rows * heads * (width + 3)),
        head_stride(width + 3),
        row_stride(heads * (width + 3)) {}

  int64_t at(int64_t b, int64_t h, int64_t r, int64_t d) const {
    return b * batch_stride + h * head_stride + r * row_stride + d;
  }
  HeadsIn in() const {
    return {values.data(), values.dtype, batch_stride, head_stride, row_stride};
  }
  HeadsOut out() {
    return {values.data(), values.dtype, batch_stride, head_stride, row_stride};
  }
};

struct Problem {
  ScalarType dtype = ScalarType::BFloat16;
  int64_t batch = 2;
  int64_t heads = 2;
  int64_t kv_heads = 2;
  int64_t queries = 40;
  int64_t keys = 40;
  int64_t width = 32;
  int64_t value_width = 32;
  int64_t first = INT64_MIN / 2;
  int64_t last = INT64_MAX / 2;
  ScalarType mask = ScalarType::Undefined;
  bool sinks = false;
  bool counts = false;
  bool gradients = true;
};

struct Run {
  Problem p;
  AttentionShape shape;
  Heads q, k, v, out, dout, dq, dk, dv;
  std::vector<float> lse, sinks, dsinks;
  std::vector<int64_t> counts;
  std::vector<float> mask_floats;
  std::vector<char> mask_bools;

  Run(const Problem& p, unsigned seed)
      : p(p),
        q(p.dtype, p.batch, p.heads, p.queries, p.width),
        k(p.dtype, p.batch, p.kv_heads, p.keys, p.width),
        v(p.dtype, p.batch, p.kv_heads, p.keys, p.value_width),
        out(p.dtype, p.batch, p.heads, p.queries, p.value_width),
        dout(p.dtype, p.batch, p.heads, p.queries, p.value_width),
        dq(p.dtype, p.batch, p.heads, p.queries, p.width),
        dk(p.dtype, p.batch, p.kv_heads, p.keys, p.width),
        dv(p.dtype, p.batch, p.kv_heads, p.keys, p.value_width),
        lse(p.batch * p.heads * p.queries) {
    std::mt19937 random(seed);
    for (auto* x : {&q, &k, &v, &dout}) {
      x->values.fill(random);
    }
    shape = {
        p.batch,
        p.heads,
        p.kv_heads,
        p.queries,
        p.keys,
        p.width,
        p.value_width};
    shape.scale = 1.0f / std::sqrt(float(p.width));
    shape.visible = {p.first, p.last};
    const auto mask_size = p.batch * p.queries * p.keys;
    if (p.mask == ScalarType::Bool) {
      for (int64_t i = 0; i < mask_size; ++i) {
        mask_bools.push_back(random() % 4 != 0);
      }
      shape.mask = {
          mask_bools.data(), p.mask, p.queries * p.keys, 0, p.keys, 1};
    } else if (p.mask == ScalarType::Float) {
      for (int64_t i = 0; i < mask_size; ++i) {
        mask_floats.push_back(
            random() % 8 == 0 ? -kInfinity : random() % 100 / 50.0);
      }
      shape.mask = {
          mask_floats.data(), p.mask, p.queries * p.keys, 0, p.keys, 1};
    }
    if (p.sinks) {
      for (int64_t h = 0; h < p.heads; ++h) {
        sinks.push_back(0.5f * h - 0.25f);
      }
      dsinks.resize(p.heads);
      shape.sinks = sinks.data();
    }
    if (p.counts) {
      for (int64_t b = 0; b < p.batch; ++b) {
        counts.push_back(p.keys / (b + 1));
      }
      shape.key_counts = counts.data();
    }
  }

  // Scaled and masked, -inf where hidden.
  double score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const auto kv = h / (p.heads / p.kv_heads);
    if (j - i < p.first || j - i > p.last || (p.counts && j >= counts[b])) {
      return -kInfinity;
    }
    double s = 0;
    for (int64_t d = 0; d < p.width; ++d) {
      s += q.values.get(q.at(b, h, i, d)) * k.values.get(k.at(b, kv, j, d));
    }
    s *= shape.scale;
    const auto at = (b * p.queries + i) * p.keys + j;
    if (p.mask == ScalarType::Bool && !mask_bools[at]) {
      return -kInfinity;
    }
    return p.mask == ScalarType::Float ? s + mask_floats[at] : s;
  }

  void forward() {
    host_kernels::attention_forward(
        shape, q.in(), k.in(), v.in(), out.out(), lse.data());
  }
  void backward() {
    host_kernels::attention_backward(
        shape,
        q.in(),
        k.in(),
        v.in(),
        out.in(),
        dout.in(),
        lse.data(),
        {dq.out(), dk.out(), dv.out(), p.sinks ? dsinks.data() : nullptr});
  }
};

std::ostream& operator<<(std::ostream& text, const Problem& p) {
  return text << p.dtype << " heads " << p.heads << "/" << p.kv_heads << " "
              << p.queries << "x" << p.keys << " width " << p.width << ","
              << p.value_width << " ";
}

// Relative error that the rounding of probabilities to the operand's type
// may cause, beside the rounding of the result.
double slack(ScalarType dtype) {
  return dtype == ScalarType::BFloat16 ? 2e-3 : 2e-5;
}

void check_attention(const Problem& p, unsigned seed = 1) {
  Run run(p, seed);
  run.forward();
  if (p.gradients) {
    run.backward();
  }
  const auto group = p.heads / p.kv_heads;
  const auto n = p.batch * p.heads;
  std::vector<double> dk(p.batch * p.kv_heads * p.keys * p.width);
  std::vector<double> dv(p.batch * p.kv_heads * p.keys * p.value_width);
  auto dk_size = dk, dv_size = dv;
  std::vector<double> dsinks(p.heads);
  for (int64_t s = 0; s < n; ++s) {
    const auto b = s / p.heads, h = s % p.heads, kv = h / group;
    for (int64_t i = 0; i < p.queries; ++i) {
      std::vector<double> scores(p.keys);
      double top = p.sinks ? run.sinks[h] : -kInfinity;
      for (int64_t j = 0; j < p.keys; ++j) {
        scores[j] = run.score(b, h, i, j);
        top = std::max(top, scores[j]);
      }
      double sum = p.sinks ? std::exp(run.sinks[h] - top) : 0;
      for (int64_t j = 0; j < p.keys; ++j) {
        sum += scores[j] == -kInfinity ? 0 : std::exp(scores[j] - top);
      }
      const double lse = top + std::log(sum);
      const double got_lse = run.lse[(b * p.heads + h) * p.queries + i];
      CHECK(
          top == -kInfinity ? got_lse == -kInfinity
                            : std::abs(got_lse - lse) < 1e-4)
          << p << "log-sum-exp " << got_lse << " wanted " << lse;
      std::vector<double> probability(p.keys);
      for (int64_t j = 0; j < p.keys; ++j) {
        probability[j] =
            scores[j] == -kInfinity ? 0 : std::exp(scores[j] - lse);
      }
      double delta = 0;
      for (int64_t d = 0; d < p.value_width; ++d) {
        double wanted = 0, size = 0;
        for (int64_t j = 0; j < p.keys; ++j) {
          const auto x =
              probability[j] * run.v.values.get(run.v.at(b, kv, j, d));
          wanted += x;
          size += std::abs(x);
        }
        const auto got = run.out.values.get(run.out.at(b, h, i, d));
        CHECK(rounds_to(p.dtype, got, wanted, size * slack(p.dtype) + 1e-6))
            << p << "output " << i << "," << d << ": " << got << " wanted "
            << wanted;
        delta += got * run.dout.values.get(run.dout.at(b, h, i, d));
      }
      if (!p.gradients) {
        continue;
      }
      if (p.sinks) {
        dsinks[h] -= std::exp(run.sinks[h] - lse) * delta;
      }
      std::vector<double> dscore(p.keys);
      for (int64_t j = 0; j < p.keys; ++j) {
        double dp = 0;
        for (int64_t d = 0; d < p.value_width; ++d) {
          const auto dout = run.dout.values.get(run.dout.at(b, h, i, d));
          dp += dout * run.v.values.get(run.v.at(b, kv, j, d));
          const auto at =
              ((b * p.kv_heads + kv) * p.keys + j) * p.value_width + d;
          dv[at] += probability[j] * dout;
          dv_size[at] += std::abs(probability[j] * dout);
        }
        dscore[j] = probability[j] * (dp - delta) * run.shape.scale;
        for (int64_t d = 0; d < p.width; ++d) {
          const auto at = ((b * p.kv_heads + kv) * p.keys + j) * p.width + d;
          const auto x = dscore[j] * run.q.values.get(run.q.at(b, h, i, d));
          dk[at] += x;
          dk_size[at] += std::abs(x);
        }
      }
      for (int64_t d = 0; d < p.width; ++d) {
        double wanted = 0, size = 0;
        for (int64_t j = 0; j < p.keys; ++j) {
          const auto x = dscore[j] * run.k.values.get(run.k.at(b, kv, j, d));
          wanted += x;
          size += std::abs(x);
        }
        const auto got = run.dq.values.get(run.dq.at(b, h, i, d));
        CHECK(rounds_to(p.dtype, got, wanted, size * 2 * slack(p.dtype) + 1e-5))
            << p << "query gradient " << i << "," << d << ": " << got
            << " wanted " << wanted;
      }
    }
  }
  if (!p.gradients) {
    return;
  }
  for (int64_t s = 0; s < p.batch * p.kv_heads * p.keys; ++s) {
    const auto j = s % p.keys, kv = s / p.keys % p.kv_heads;
    const auto b = s / p.keys / p.kv_heads;
    for (int64_t d = 0; d < p.width; ++d) {
      const auto at = s * p.width + d;
      const auto got = run.dk.values.get(run.dk.at(b, kv, j, d));
      CHECK(rounds_to(
          p.dtype, got, dk[at], dk_size[at] * 2 * slack(p.dtype) + 1e-5))
          << p << "key gradient " << j << "," << d << ": " << got << " wanted "
          << dk[at];
    }
    for (int64_t d = 0; d < p.value_width; ++d) {
      const auto at = s * p.value_width + d;
      const auto got = run.dv.values.get(run.dv.at(b, kv, j, d));
      CHECK(rounds_to(
          p.dtype, got, dv[at], dv_size[at] * 2 * slack(p.dtype) + 1e-5))
          << p << "value gradient " << j << "," << d << ": " << got
          << " wanted " << dv[at];
    }
  }
  for (int64_t h = 0; p.sinks && h < p.heads; ++h) {
    CHECK(
        std::abs(run.dsinks[h] - dsinks[h]) < 1e-2 * (1 + std::abs(dsinks[h])))
        << p << "sink gradient " << run.dsinks[h] << " wanted " << dsinks[h];
  }
}

constexpr ScalarType kDtypes[] = {
    ScalarType::Float, ScalarType::BFloat16, ScalarType::Half};

TEST(attention_matches_the_double_reference) {
  for (const auto dtype : kDtypes) {
    check_attention({dtype});
    check_attention({dtype, 1, 2, 2, 33, 129, 64, 64});
    check_attention({dtype, 1, 1, 1, 70, 300, 80, 80});
    check_attention({dtype, 1, 3, 3, 9, 9, 16, 24});
    check_attention({dtype, 1, 1, 1, 50, 60, 256, 256});
  }
}

TEST(causal_attention_matches) {
  for (const auto dtype : kDtypes) {
    Problem p{dtype, 1, 2, 2, 150, 150};
    p.last = 0;
    check_attention(p);
    p.keys = 261;
    p.last = p.keys - p.queries;
    check_attention(p);
    p.queries = 300;  // the first queries see nothing
    p.last = p.keys - p.queries;
    check_attention(p);
  }
}

TEST(a_sliding_window_matches) {
  for (const auto dtype : kDtypes) {
    Problem p{dtype, 1, 1, 1, 200, 330};
    p.last = p.keys - p.queries;
    p.first = p.last - 40;
    check_attention(p);
    p.queries = 4;
    p.last = p.keys - p.queries;
    p.first = p.last - 40;
    check_attention(p);
  }
}

TEST(heads_that_share_keys_match) {
  for (const auto dtype : kDtypes) {
    Problem p{dtype, 2, 6, 2, 45, 130};
    check_attention(p);
    p.kv_heads = 1;
    p.last = 85;
    check_attention(p);
  }
}

TEST(masks_match) {
  for (const auto dtype : kDtypes) {
    for (const auto mask : {ScalarType::Bool, ScalarType::Float}) {
      for (const int64_t queries : {1, 3, 70}) {
        Problem p{dtype, 2, 2, 1, queries, 140};
        p.mask = mask;
        check_attention(p);
        p.last = 70;
        check_attention(p);
      }
    }
  }
}

TEST(sinks_and_key_counts_match) {
  for (const auto dtype : kDtypes) {
    for (const int64_t queries : {2, 40}) {
      Problem p{dtype, 2, 4, 2, queries, 100};
      p.sinks = true;
      check_attention(p);
      p.counts = true;
      check_attention(p);
    }
  }
}

TEST(decoding_matches) {
  for (const auto dtype : kDtypes) {
    for (const int64_t queries : {1, 2, 5, 8}) {
      Problem p{dtype, 2, 8, 2, queries, 1500, 64, 64};
      p.batch = queries == 1 ? 1 : 2;
      p.kv_heads = queries == 1 ? 1 : 2;
      p.last = p.keys - p.queries;
      p.gradients = queries == 5;
      check_attention(p);
    }
  }
}

TEST(an_eight_bit_cache_is_read_as_it_lies) {
  Run run({ScalarType::BFloat16, 1, 2, 2, 1, 64}, 3);
  Heads k8(ScalarType::Float8_e4m3fn, 1, 2, 64, 32);
  Heads v8(ScalarType::Float8_e4m3fn, 1, 2, 64, 32);
  for (int64_t i = 0; i < k8.values.size() - 8; ++i) {
    k8.values.set(i, run.k.values.get(i));
    v8.values.set(i, run.v.values.get(i));
    run.k.values.set(i, k8.values.get(i));
    run.v.values.set(i, v8.values.get(i));
  }
  run.forward();
  const auto wanted = run.out.values;
  host_kernels::attention_forward(
      run.shape, run.q.in(), k8.in(), v8.in(), run.out.out(), nullptr);
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t d = 0; d < 32; ++d) {
      const auto at = run.out.at(0, h, 0, d);
      CHECK(run.out.values.get(at) == wanted.get(at));
    }
  }
}

}  // namespace
}  // namespace neuron::test

int main(int argc, char** argv) { return neuron::test::run_all(argc, argv); }
