// What every function of the fake libcuda begins with, and the codes that it returns.
#pragma once

#include "fake_state.h"

#include <exception>

#define EXPORT extern "C" __attribute__((visibility("default")))
// Counts the call, and returns the failure that a test asked for, or the loss of the current context.
#define ENTER(name)                                                                                                    \
    do {                                                                                                               \
        if (const int injected = enter(name))                                                                          \
            return static_cast<Code>(injected);                                                                        \
    } while (false)
// For functions that release something: the object is released, whatever they return.
#define RELEASE(name, release)                                                                                         \
    do {                                                                                                               \
        const int injected = enter(name);                                                                              \
        release;                                                                                                       \
        return static_cast<Code>(injected);                                                                            \
    } while (false)
// Behind the body of each function: without memory it fails, as the real one does.
#define CATCH_OUT_OF_MEMORY                                                                                            \
    catch (const std::exception&) {                                                                                    \
        return code_out_of_memory;                                                                                     \
    }
#define NEEDS_CONTEXT()                                                                                                \
    do {                                                                                                               \
        if (!current)                                                                                                  \
            return invalid_context;                                                                                    \
        if (const int lost_by = current->lost_by.load())                                                               \
            return static_cast<Code>(lost_by);                                                                         \
    } while (false)

// For functions of a stream.
#define NEEDS_STREAM(stream)                                                                                           \
    do {                                                                                                               \
        NEEDS_CONTEXT();                                                                                               \
        if ((stream)->is_dead())                                                                                       \
            return launch_failed;                                                                                      \
    } while (false)

namespace polder::cuda::fake {

inline constexpr Code invalid_value{static_cast<Code>(1)};
inline constexpr Code invalid_device{static_cast<Code>(101)};
inline constexpr Code invalid_image{static_cast<Code>(200)};
inline constexpr Code invalid_context{static_cast<Code>(201)};
inline constexpr Code invalid_ptx{static_cast<Code>(218)};
inline constexpr Code not_found{static_cast<Code>(500)};
inline constexpr Code host_memory_not_registered{static_cast<Code>(713)};
inline constexpr Code launch_failed{static_cast<Code>(719)};
inline constexpr int max_shared_bytes = 228 << 10;

inline int failure_of(const char* name) {
    ++calls_here(name);
    const std::lock_guard lock(state().mutex);
    State& all = state();
    // Found without a string, so that only the first call of a name allocates.
    if (const auto known = all.calls.find(name); known != all.calls.end())
        ++known->second;
    else
        all.calls.emplace(name, 1);
    if (all.calls_until_failure >= 0 && all.calls_until_failure-- == 0) {
        all.failed_call = name;
        return all.failure_of_call;
    }
    if (const auto lasting = all.lasting_failures.find(name); lasting != all.lasting_failures.end())
        return lasting->second;
    const auto found = all.failures.find(name);
    if (found == all.failures.end())
        return 0;
    const int code = found->second;
    all.failures.erase(found);
    return code;
}

// A GPU whose state can never be queried again has, for its users, stopped.
inline bool fails_for_ever(const char* name) {
    const std::lock_guard lock(state().mutex);
    return state().lasting_failures.contains(name);
}

// A call that fails with the code of a lost GPU has lost it.
inline int enter(const char* name) {
    const int code = failure_of(name);
    if (code == launch_failed && current)
        kill_streams(*current);
    return code;
}

inline std::byte* pointer(DevicePointer address) {
    return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address));
}

inline void count_bytes(const char* name, uint64_t bytes) {
    const std::lock_guard lock(state().mutex);
    state().bytes[name] += bytes;
}

}  // namespace polder::cuda::fake
