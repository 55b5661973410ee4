// Lists of tensors walked in one launch.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <vector>

#include "dispatch/direct.h"
#include "dispatch/pointwise_binary.h"
#include "host_kernels/parallel.h"
#include "host_kernels/pointwise.h"

namespace neuron {

struct ListItem {
  void* out;
  const void* in[2];
  int64_t count;
  host_kernels::ComputeValue value;  // of a number operand
  double parameter;
};

// Direct, not empty, of one dtype and device, each with memory of its own.
bool one_of_a_kind(at::TensorList list);

// `other` has the same tensors in shape, dtype and device, and writing the
// first list elementwise does not disturb it.
bool match(at::TensorList list, at::TensorList other);

class ListWork {
 public:
  ListWork(at::TensorList out, std::initializer_list<at::TensorList> in);
  // One number for all, or one per tensor.
  void set_values(
      at::ArrayRef<at::Scalar> scalars, c10::ScalarType dtype, bool rounded);
  void set_parameters(at::ArrayRef<at::Scalar> scalars);
  const std::vector<ListItem>& items() const { return items_; }
  int64_t itemsize() const { return itemsize_; }

 private:
  std::vector<ListItem> items_;
  int64_t itemsize_;
};

// Runs kernel(item) for each tensor, large ones in pieces on all threads.
template <class F>
void launch_list(
    const OpRecord& record, at::TensorList self, ListWork&& work, F kernel) {
  // Shared: queue tasks and threads copy the closure, not the list.
  auto list = std::make_shared<const ListWork>(std::move(work));
  launch_on(record, self[0], [list, kernel] {
    const auto size = list->itemsize();
    for (const auto& item : list->items()) {
      if (item.count <= host_kernels::kGrain) {
        kernel(item);
        continue;
      }
      host_kernels::in_parts(item.count, [&](int64_t begin, int64_t end) {
        auto part = item;
        const auto skip = begin * size;
        part.out = static_cast<char*>(part.out) + skip;
        for (auto& in : part.in) {
          in = in == nullptr ? in : static_cast<const char*>(in) + skip;
        }
        part.count = end - begin;
        kernel(part);
      });
    }
  });
}

}  // namespace neuron
