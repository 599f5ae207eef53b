// Descriptor: a file descriptor that is closed at the end. write_all: every byte, or a failure.
//
// For files that Polder writes itself: LLVM's functions keep the name of each file for good, for signal handlers that would remove it.
// Not thread-safe.
#pragma once

#include <cerrno>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace polder::compiler {

// A negative number means no file.
class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0)
            close(number_);
    }
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;

    [[nodiscard]] explicit operator bool() const { return number_ >= 0; }
    [[nodiscard]] int number() const { return number_; }
    // Whether closing succeeded: the last write may fail only here.
    bool close_now() { return close(std::exchange(number_, -1)) == 0; }

private:
    int number_;
};

// False, with errno, when a write fails.
inline bool write_all(int file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = write(file, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes.remove_prefix(static_cast<size_t>(written));
    }
    return true;
}

}  // namespace polder::compiler
