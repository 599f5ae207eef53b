// ScatteredReferences: a reference count that threads change without a shared cache line, for contexts and queues: every
// buffer, queue and event holds a reference to a context, every event one to its queue.
//
// The count is divided into shards. Each of the first threads (base/thread_number.h) has a shard of its own; the others share as many. A shard counts
// the references taken and the references released; both only grow. While the application has a handle, the sum is
// not needed. Without a handle (`Mode::summed`), a thread that releases a reference adds up the shards: first all released
// references, then all taken ones. A reference that existed between the two sums was taken before the second and
// not released before the first. So equal sums mean that none existed then, and none can be taken any more.
// The algorithm is that of percpu_ref in the Linux kernel, with the sums of a read indicator instead of its grace period.
//
// Releasing a reference and leaving `Mode::scattered` are Dekker's handshake: each writes (a counter, the mode) and then
// reads what the other writes. So either the sum contains the release, or the thread that released the reference computes the sum again.
// Only the thread that leaves `Mode::scattered` has a fence, which all threads execute (base/process_fence.h). In `Mode::summed` the threads
// that add up the shards do so one after the other, under a lock, each after its own release: so the last one sees all releases.
//
// Taking or releasing a reference in a shard of one's own is a plain store. The sums see it in time: a thread takes a reference while it holds another one,
// so the store happened before the release of the other one, and with it before any sum that contains this release.
//
// Counters are never freed, only reused for another object: a thread that has released the last reference but one may
// still read the mode after another thread has destroyed the object. It then adds up the counters of the next object,
// which is harmless.
// Any thread may call any function while it holds a reference.
#pragma once

#include <base/process_fence.h>
#include <base/thread_number.h>
#include <runtime/handle.h>

#include <atomic>
#include <cstdint>

namespace polder::runtime {

class ScatteredReferences {
public:
    enum class Mode : uint8_t { scattered, summed };
    using Destroy = void (*)(void* object);

    // Counters with one reference, in Mode::summed; `destroy(object)` is called once when none is left. The object calls
    // `recycle` in the end.
    [[nodiscard]] static ScatteredReferences& create(void* object, Destroy destroy);
    void recycle();

    [[gnu::always_inline]] void take() {
        const uint32_t thread = thread_number();
        std::atomic<uint64_t>& taken = shard_of(thread).taken;
        if (thread < own_shards) [[likely]]  // no other thread writes it
            taken.store(taken.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        else
            taken.fetch_add(1, std::memory_order_relaxed);
    }
    [[gnu::always_inline]] void give_up() {
        const uint32_t thread = thread_number();
        std::atomic<uint64_t>& given_up = shard_of(thread).given_up;
        if (thread < own_shards && may_fence_) [[likely]] {
            given_up.store(given_up.load(std::memory_order_relaxed) + 1, std::memory_order_release);
            std::atomic_signal_fence(std::memory_order_seq_cst);
        } else {
            given_up.fetch_add(1, std::memory_order_seq_cst);
        }
        if (mode_.load(std::memory_order_seq_cst) == Mode::summed) [[unlikely]]
            destroy_if_unreferenced();
    }
    // The caller holds a reference.
    void set_mode(Mode mode) {
        mode_.store(mode, std::memory_order_seq_cst);
        if (mode == Mode::summed && may_fence_)
            fence_all_threads();
    }

private:
    ScatteredReferences() = default;
    void destroy_if_unreferenced();
    [[nodiscard]] bool is_unreferenced() const;

    struct alignas(64) Shard {
        std::atomic<uint64_t> taken{0};
        std::atomic<uint64_t> given_up{0};
    };
    static constexpr uint32_t own_shards = 32;
    [[nodiscard]] Shard& shard_of(uint32_t thread) {
        return shards_[thread < own_shards ? thread : own_shards + thread % own_shards];
    }

    Shard shards_[2 * own_shards];
    alignas(64) std::atomic<Mode> mode_{Mode::summed};
    const bool may_fence_ = may_fence_all_threads();
    void* object_ = nullptr;  // null once it is to be destroyed; with the rest under a lock of the process
    Destroy destroy_ = nullptr;
    ScatteredReferences* next_ = nullptr;  // of those that no object uses
};

// The base of an object type T whose references are scattered. Ref<T> counts here, not in RefCounted. So a Ref<T> must
// never be converted to a Ref of a base class.
template <class T>
class ScatteredObject : public Object {
public:
    // Instead of RefCounted's.
    void retain() const { references_.take(); }  // NOLINT(bugprone-derived-method-shadowing-base-method)
    void release() const { references_.give_up(); }  // NOLINT(bugprone-derived-method-shadowing-base-method)

protected:
    ~ScatteredObject() override { references_.recycle(); }

private:
    friend T;
    ScatteredObject()
        : references_(ScatteredReferences::create(
              this, [](void* self) { delete static_cast<T*>(static_cast<ScatteredObject*>(self)); })) {}
    void on_exposed() override { references_.set_mode(ScatteredReferences::Mode::scattered); }
    void retain_for_handle() override { retain(); }
    void release_for_handle() override {
        references_.set_mode(ScatteredReferences::Mode::summed);
        release();
    }

    ScatteredReferences& references_;
};

}  // namespace polder::runtime
