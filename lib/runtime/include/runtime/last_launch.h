// LastLaunch: the sizes of a kernel's last launch and what was chosen for them. A launch of the same sizes on the same device passes the
// same checks and executes the same code, so that most launches of a program check their sizes once.
//
// One entry for each kernel, which threads read without writing: they copy it, and look at its number before and after (a
// sequence lock, as in the Linux kernel's seqlock_t). A thread that finds another one writing writes nothing. Any thread.
//
// Why no reader finds half of two choices: a writer makes the number odd before it stores a word, and each word is stored with release
// order. So a reader that loads a word of this writer, with acquire order, then loads a number that is odd or higher than the one
// it began with. The test executes the steps of readers and writers in all orders that matter; the memory orders are shown by this argument
// alone, because a processor need not use the freedom that weaker ones give it (x86 cannot).
#pragma once

#include <runtime/local_size.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace polder::runtime {

class Device;
struct KernelOnDevice;
struct LoadedCode;

// `Atomic` is std::atomic but for the test.
template <template <class> class Atomic>
class BasicLastLaunch {
public:
    // What the application gave.
    struct Sizes {
        const Device* device = nullptr;
        uint32_t work_dim = 0;
        const size_t* global = nullptr;  // work_dim numbers
        const size_t* local = nullptr;  // likewise; null: none
    };
    // What such a launch executes.
    struct Choice {
        const KernelOnDevice* on = nullptr;
        const LoadedCode* code = nullptr;
        Size3 local{};
    };

    // False, and `choice` is undefined, when the last launch had other sizes.
    [[nodiscard]] bool find(const Sizes& sizes, Choice& choice) const {
        const uint32_t number = number_.load(std::memory_order_acquire);
        if (number % 2 != 0 || word(device) != to_word(sizes.device) || word(dimensions) != dimensions_of(sizes))
            return false;
        for (uint32_t d = 0; d < sizes.work_dim; ++d)
            if (word(global + d) != sizes.global[d] || (sizes.local && word(given_local + d) != sizes.local[d]))
                return false;
        choice.on = reinterpret_cast<const KernelOnDevice*>(static_cast<uintptr_t>(word(on)));
        choice.code = reinterpret_cast<const LoadedCode*>(static_cast<uintptr_t>(word(code)));
        choice.local = {word(local), word(local + 1), word(local + 2)};
        // After the words, which are read with acquire order.
        return number_.load(std::memory_order_relaxed) == number;
    }

    void set(const Sizes& sizes, const Choice& choice) {
        uint32_t number = number_.load(std::memory_order_relaxed);
        if (number % 2 != 0 || !number_.compare_exchange_strong(number, number + 1, std::memory_order_acquire))
            return;
        set_word(device, to_word(sizes.device));
        set_word(dimensions, dimensions_of(sizes));
        for (uint32_t d = 0; d < sizes.work_dim; ++d) {
            set_word(global + d, sizes.global[d]);
            set_word(given_local + d, sizes.local ? sizes.local[d] : 0);
        }
        set_word(on, to_word(choice.on));
        set_word(code, to_word(choice.code));
        for (size_t d = 0; d < 3; ++d)
            set_word(local + d, choice.local[d]);
        number_.store(number + 2, std::memory_order_release);
    }

private:
    // Where each thing is in the entry.
    static constexpr size_t device = 0, dimensions = 1, global = 2, given_local = 5, on = 8, code = 9, local = 10;

    [[nodiscard]] static uint64_t to_word(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
    [[nodiscard]] static uint64_t dimensions_of(const Sizes& sizes) {
        return sizes.work_dim * 2 + (sizes.local ? 1 : 0);
    }
    [[nodiscard]] uint64_t word(size_t index) const { return words_[index].load(std::memory_order_acquire); }
    void set_word(size_t index, uint64_t value) { words_[index].store(value, std::memory_order_release); }

    Atomic<uint32_t> number_{0};  // odd while the entry is written
    std::array<Atomic<uint64_t>, 13> words_{};
};

using LastLaunch = BasicLastLaunch<std::atomic>;

}  // namespace polder::runtime
