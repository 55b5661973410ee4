// A piece of queued work: a move-only closure with room for raw pointers and
// sizes, so that queueing allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace neuron::runtime {

class Task {
 public:
  static constexpr size_t kInline = 192;

  Task() = default;

  template <
      class F,
      class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, Task>>>
  explicit Task(F&& work, uint32_t op_of_work = 0) : op(op_of_work) {
    using Work = std::decay_t<F>;
    if constexpr (fits<Work>) {
      new (storage_) Work(std::forward<F>(work));
      table_ = &inline_table<Work>;
    } else {
      new (storage_) Work*(new Work(std::forward<F>(work)));
      table_ = &heap_table<Work>;
    }
  }

  Task(Task&& other) noexcept { take(other); }
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() { reset(); }

  void operator()() { table_->call(storage_); }

  // Drops the closure and what it holds.
  void reset() noexcept {
    if (table_ != nullptr) {
      table_->destroy(storage_);
      table_ = nullptr;
    }
  }

  uint32_t op = 0;           // runtime::op_name(op)
  std::string python_frame;  // where it was queued, "" if unknown

 private:
  struct Table {
    void (*call)(void*);
    void (*move)(void*, void*) noexcept;
    void (*destroy)(void*) noexcept;
  };

  template <class Work>
  static constexpr bool fits =
      sizeof(Work) <= kInline && alignof(Work) <= alignof(std::max_align_t) &&
      std::is_nothrow_move_constructible_v<Work>;

  template <class Work>
  static constexpr Table inline_table{
      [](void* at) { (*std::launder(static_cast<Work*>(at)))(); },
      [](void* from, void* to) noexcept {
        auto* work = std::launder(static_cast<Work*>(from));
        new (to) Work(std::move(*work));
        work->~Work();
      },
      [](void* at) noexcept { std::launder(static_cast<Work*>(at))->~Work(); }};

  template <class Work>
  static constexpr Table heap_table{
      [](void* at) { (**static_cast<Work**>(at))(); },
      [](void* from, void* to) noexcept {
        new (to) Work*(*static_cast<Work**>(from));
      },
      [](void* at) noexcept { delete *static_cast<Work**>(at); }};

  void take(Task& other) noexcept {
    op = other.op;
    python_frame = std::move(other.python_frame);
    table_ = other.table_;
    if (table_ != nullptr) {
      table_->move(other.storage_, storage_);
      other.table_ = nullptr;
    }
  }

  alignas(std::max_align_t) std::byte storage_[kInline];
  const Table* table_ = nullptr;
};

}  // namespace neuron::runtime
