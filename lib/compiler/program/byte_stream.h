// Writing and reading of our binary forms (program binaries, cache entries): little-endian fields one after
// another, strings and lists with their count in front.
//
// A ByteReader never reads past its end: after the first failure every read returns zero and `ok()` is false.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace polder::compiler {

class ByteWriter {
public:
    template <class T>
        requires std::is_arithmetic_v<T> || std::is_enum_v<T>
    void put(T value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void put(std::string_view text) {
        put(uint64_t{text.size()});
        bytes_.append(text);
    }
    void put_raw(std::string_view bytes) { bytes_.append(bytes); }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

class ByteReader {
public:
    explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

    template <class T>
        requires std::is_arithmetic_v<T> || std::is_enum_v<T>
    T get() {
        T value{};
        if (const std::string_view raw = take(sizeof value); raw.size() == sizeof value)
            std::memcpy(&value, raw.data(), sizeof value);
        return value;
    }
    std::string get_string() { return std::string{take(get<uint64_t>())}; }
    // A count of things that take at least one byte each, so that damage cannot ask for absurd memory.
    uint64_t get_count() {
        const auto count = get<uint64_t>();
        if (count > rest_.size())
            is_ok_ = false;
        return is_ok_ ? count : 0;
    }
    [[nodiscard]] bool ok() const { return is_ok_; }
    [[nodiscard]] bool at_end() const { return rest_.empty(); }

private:
    std::string_view take(uint64_t size) {
        if (!is_ok_ || size > rest_.size()) {
            is_ok_ = false;
            return {};
        }
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }

    std::string_view rest_;
    bool is_ok_ = true;
};

} // namespace polder::compiler
