// Storages whose memory other processes map, too.
#include <torch/csrc/autograd/python_variable.h>

#include <cstring>

#include "bindings/bindings.h"
#include "c10/device.h"
#include "c10/storage.h"
#include "runtime/queue.h"

namespace neuron::bindings {
namespace py = pybind11;
namespace {

// What a shared storage holds on to: the mapping that the processes share,
// and the modelled HBM that the storage had, which stays taken.
struct SharedMemory {
  c10::intrusive_ptr<c10::StorageImpl> mapping;
  c10::DataPtr device_memory;
};

c10::intrusive_ptr<c10::StorageImpl> storage_of(const at::Tensor& tensor) {
  return c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(
      tensor.storage().unsafeGetStorageImpl());
}

// Moves the storage of `tensor` into that of the CPU tensor `shared`, which
// is at least as large.
void move_into_shared(const at::Tensor& tensor, const at::Tensor& shared) {
  auto* storage = tensor.storage().unsafeGetStorageImpl();
  auto* mapping = shared.storage().unsafeGetStorageImpl();
  TORCH_INTERNAL_ASSERT(
      mapping->nbytes() >= storage->nbytes(), "shared memory is too small");
  {
    py::gil_scoped_release release;
    with_torch_errors(
        [&] { runtime::synchronize_device(tensor.get_device()); });
    std::memcpy(mapping->mutable_data(), storage->data(), storage->nbytes());
  }
  auto* kept = new SharedMemory{storage_of(shared), {}};
  auto before = storage->set_data_ptr(
      c10::DataPtr(
          mapping->mutable_data(),
          kept,
          [](void* context) { delete static_cast<SharedMemory*>(context); },
          storage->device()));
  kept->device_memory = std::move(before);
  // Other memory would no longer be shared.
  storage->set_resizable(false);
}

// A tensor of bytes on `device` over the memory of the CPU tensor `shared`.
at::Tensor over_shared(const at::Tensor& shared, int device) {
  auto storage =
      adopt_storage(storage_of(shared), device, /*only_holder=*/false);
  storage->set_resizable(false);
  const auto nbytes = static_cast<int64_t>(storage->nbytes());
  auto bytes =
      at::empty({0}, at::device(device_at(device)).dtype(at::ScalarType::Byte));
  bytes.set_(c10::Storage(std::move(storage)), 0, {nbytes}, {1});
  return bytes;
}

}  // namespace

void add_sharing(py::module_& m) {
  m.def("_move_into_shared", &move_into_shared);
  m.def("_over_shared", &over_shared);
}

}  // namespace neuron::bindings
