#include "host_kernels/gemm.h"

#include <c10/util/Exception.h>

#include <limits>

#include "check.h"
#include "values.h"

namespace neuron::test {
namespace {

using host_kernels::GemmArgs;
using host_kernels::MatrixIn;
using host_kernels::MatrixOut;

enum class Layout { rows, columns, padded, strided };

struct Matrix {
  Values values;
  int64_t offset = 0;
  int64_t batch_stride = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 0;

  int64_t at(int64_t b, int64_t i, int64_t j) const {
    return offset + b * batch_stride + i * row_stride + j * column_stride;
  }
  MatrixIn in() const {
    return {
        static_cast<const char*>(values.data()) +
            offset * static_cast<int64_t>(c10::elementSize(values.dtype)),
        values.dtype,
        batch_stride,
        row_stride,
        column_stride};
  }
  MatrixOut out() {
    const auto view = in();
    return {
        const_cast<void*>(view.data),
        view.dtype,
        batch_stride,
        row_stride,
        column_stride};
  }
};

Matrix make(
    ScalarType dtype,
    int64_t batch,
    int64_t rows,
    int64_t columns,
    Layout layout,
    std::mt19937& random) {
  Matrix m{Values(dtype, 0)};
  m.offset = layout == Layout::rows ? 0 : 3;
  switch (layout) {
    case Layout::rows:
      m.row_stride = columns;
      m.column_stride = 1;
      break;
    case Layout::columns:
      m.row_stride = 1;
      m.column_stride = rows;
      break;
    case Layout::padded:
      m.row_stride = columns + 5;
      m.column_stride = 1;
      break;
    case Layout::strided:
      m.row_stride = 2 * columns + 1;
      m.column_stride = 2;
      break;
  }
  m.batch_stride = (rows + 1) * (columns + 6) * 2;
  m.values = Values(dtype, m.offset + batch * m.batch_stride + 8);
  m.values.fill(random);
  return m;
}

struct Problem {
  int64_t batch, m, n, k;
  ScalarType a, b, out;
  Layout a_layout = Layout::rows;
  Layout b_layout = Layout::rows;
  Layout out_layout = Layout::rows;
  bool scales = false;
  bool bias = false;
  float alpha = 1.0f;
  float beta = 0.0f;
};

void check_product(const Problem& p, std::mt19937& random) {
  auto a = make(p.a, p.batch, p.m, p.k, p.a_layout, random);
  auto b = make(p.b, p.batch, p.k, p.n, p.b_layout, random);
  auto out = make(p.out, p.batch, p.m, p.n, p.out_layout, random);
  const auto before = out.values;
  auto bias = make(p.out, 1, 1, p.n, Layout::rows, random);
  std::vector<float> row_scale(p.m), column_scale(p.n);
  for (auto& x : row_scale)
    x = 0.5f + (random() % 100) / 64.0f;
  for (auto& x : column_scale)
    x = 0.5f + (random() % 100) / 64.0f;
  GemmArgs args{p.batch, p.m, p.n, p.k, a.in(), b.in(), out.out()};
  args.alpha = p.alpha;
  args.beta = p.beta;
  if (p.bias) {
    args.addend = bias.in();
    args.addend.row_stride = args.addend.batch_stride = 0;
  } else if (p.beta != 0) {
    args.addend = out.in();
  }
  if (p.scales) {
    args.row_scale = row_scale.data();
    args.column_scale = column_scale.data();
  }
  host_kernels::gemm(args);
  std::vector<char> written(out.values.size());
  for (int64_t s = 0; s < p.batch; ++s) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          const auto x =
              a.values.get(a.at(s, i, k)) * b.values.get(b.at(s, k, j));
          sum += x;
          size += std::abs(x);
        }
        const double scale =
            p.alpha * (p.scales ? double(row_scale[i]) * column_scale[j] : 1);
        const auto position = out.at(s, i, j);
        const double added =
            p.beta == 0 ? 0
                        : p.beta * (p.bias ? bias.values.get(bias.at(0, 0, j))
                                           : before.get(position));
        const double wanted = sum * scale + added;
        const double error = (size * std::abs(scale) + std::abs(added)) * 4e-7 *
                             (1 + std::sqrt(double(p.k)) / 8);
        const double got = out.values.get(position);
        written[position] = 1;
        CHECK(rounds_to(p.out, got, wanted, error))
            << "m=" << p.m << " n=" << p.n << " k=" << p.k << " dtypes " << p.a
            << " " << p.b << " " << p.out << " layouts " << int(p.a_layout)
            << int(p.b_layout) << int(p.out_layout) << " at " << i << "," << j
            << ": " << got << " wanted " << wanted;
      }
    }
  }
  for (int64_t i = 0; i < out.values.size(); ++i) {
    if (!written[i]) {
      CHECK(out.values.get(i) == before.get(i)) << "outside the output";
    }
  }
}

constexpr ScalarType kOperands[] = {
    ScalarType::Float,
    ScalarType::BFloat16,
    ScalarType::Half,
    ScalarType::Float8_e4m3fn,
    ScalarType::Float8_e5m2,
    ScalarType::Char};
constexpr ScalarType kOutputs[] = {
    ScalarType::Float, ScalarType::BFloat16, ScalarType::Half};
constexpr Layout kLayouts[] = {
    Layout::rows, Layout::columns, Layout::padded, Layout::strided};

TEST(every_dtype_pair_and_layout_matches_the_double_product) {
  std::mt19937 random(1);
  for (const auto a : kOperands) {
    for (const auto b : kOperands) {
      for (const auto layout : kLayouts) {
        for (const auto other : kLayouts) {
          check_product(
              {1, 17, 37, 33, a, b, kOutputs[random() % 3], layout, other},
              random);
        }
      }
    }
  }
}

TEST(few_rows_or_columns_match_the_double_product) {
  std::mt19937 random(2);
  for (int64_t m = 1; m <= 16; ++m) {
    for (const auto dtype : kOperands) {
      for (const auto layout : kLayouts) {
        const int64_t n = 1 + random() % 90;
        const int64_t k = 1 + random() % 300;
        check_product(
            {1,
             m,
             n,
             k,
             ScalarType::BFloat16,
             dtype,
             ScalarType::BFloat16,
             Layout::rows,
             layout},
            random);
        check_product(
            {2,
             n,
             m,
             k,
             dtype,
             ScalarType::Half,
             ScalarType::Float,
             layout,
             Layout::columns},
            random);
      }
    }
  }
}

TEST(random_problems_match_the_double_product) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const auto pick = [&](const auto& list) {
      return list[random() % std::size(list)];
    };
    Problem p{
        int64_t(1 + random() % 3),
        int64_t(1 + random() % (i % 5 == 0 ? 200 : 40)),
        int64_t(1 + random() % (i % 7 == 0 ? 300 : 70)),
        int64_t(random() % (i % 3 == 0 ? 700 : 40)),
        pick(kOperands),
        pick(kOperands),
        pick(kOutputs),
        pick(kLayouts),
        pick(kLayouts),
        pick(kLayouts)};
    p.scales = random() % 2;
    p.bias = random() % 2;
    p.alpha = random() % 2 ? 1.0f : 0.75f;
    p.beta = random() % 2 ? 0.0f : p.bias ? 1.0f : 0.5f;
    check_product(p, random);
  }
}

TEST(a_long_sum_for_a_small_output_is_right) {
  std::mt19937 random(4);
  for (const auto dtype : kOperands) {
    check_product({1, 20, 24, 20001, dtype, dtype, ScalarType::Float}, random);
    check_product({1, 3, 24, 20001, dtype, dtype, ScalarType::Float}, random);
    check_product(
        {1,
         3,
         24,
         20001,
         dtype,
         dtype,
         ScalarType::Float,
         Layout::rows,
         Layout::columns},
        random);
  }
}

TEST(an_empty_sum_leaves_the_scaled_addend) {
  std::mt19937 random(5);
  Problem p{
      2,
      5,
      7,
      0,
      ScalarType::BFloat16,
      ScalarType::BFloat16,
      ScalarType::BFloat16};
  check_product(p, random);
  p.beta = 0.5f;
  check_product(p, random);
}

TEST(operands_may_be_expanded_with_stride_zero) {
  std::mt19937 random(6);
  auto a = make(ScalarType::BFloat16, 1, 1, 64, Layout::rows, random);
  auto b = make(ScalarType::BFloat16, 1, 64, 48, Layout::rows, random);
  auto out = make(ScalarType::Float, 3, 20, 48, Layout::rows, random);
  GemmArgs args{3, 20, 48, 64, a.in(), b.in(), out.out()};
  args.a.row_stride = args.a.batch_stride = args.b.batch_stride = 0;
  host_kernels::gemm(args);
  for (int64_t s = 0; s < 3; ++s) {
    for (int64_t i = 0; i < 20; ++i) {
      for (int64_t j = 0; j < 48; ++j) {
        CHECK(
            out.values.get(out.at(s, i, j)) == out.values.get(out.at(0, 0, j)));
      }
    }
  }
}

TEST(nan_and_infinity_stay_in_their_row) {
  for (const auto dtype :
       {ScalarType::BFloat16, ScalarType::Half, ScalarType::Float}) {
    for (const int64_t m : {3, 40}) {
      std::mt19937 random(7);
      auto a = make(dtype, 1, m, 50, Layout::rows, random);
      auto b = make(dtype, 1, 50, 45, Layout::rows, random);
      auto out = make(dtype, 1, m, 45, Layout::rows, random);
      a.values.set(a.at(0, 1, 20), std::numeric_limits<double>::quiet_NaN());
      a.values.set(a.at(0, 2, 49), std::numeric_limits<double>::infinity());
      host_kernels::gemm({1, m, 45, 50, a.in(), b.in(), out.out()});
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < 45; ++j) {
          const auto got = out.values.get(out.at(0, i, j));
          CHECK(std::isnan(got) == (i == 1)) << i << "," << j;
          CHECK(std::isinf(got) == (i == 2)) << i << "," << j;
        }
      }
    }
  }
}

TEST(beta_zero_does_not_read_the_addend) {
  std::mt19937 random(8);
  auto a = make(ScalarType::BFloat16, 1, 20, 8, Layout::rows, random);
  auto b = make(ScalarType::BFloat16, 1, 8, 20, Layout::rows, random);
  auto out = make(ScalarType::BFloat16, 1, 20, 20, Layout::rows, random);
  for (int64_t i = 0; i < 400; ++i) {
    out.values.set(i, std::numeric_limits<double>::quiet_NaN());
  }
  GemmArgs args{1, 20, 20, 8, a.in(), b.in(), out.out(), out.in()};
  host_kernels::gemm(args);
  for (int64_t i = 0; i < 400; ++i) {
    CHECK(std::isfinite(out.values.get(i)));
  }
}

TEST(an_unknown_dtype_is_refused_with_its_name) {
  float x = 0;
  GemmArgs args{1, 1, 1, 1, {&x, ScalarType::Int}, {&x}, {&x}};
  std::string message;
  try {
    host_kernels::gemm(args);
  } catch (const c10::ValueError& error) {
    message = error.what_without_backtrace();
  }
  CHECK(message.find("Int") != std::string::npos) << message;
}

}  // namespace
}  // namespace neuron::test

int main(int argc, char** argv) { return neuron::test::run_all(argc, argv); }
