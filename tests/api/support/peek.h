// Reads memory that a command in flight may be writing, which a thread sanitizer would report: only to see that it has.
#pragma once

namespace polder::test {

template <class T>
[[gnu::noinline, gnu::no_sanitize("thread")]] T peek(const volatile T& value) {
    return value;
}

}  // namespace polder::test
