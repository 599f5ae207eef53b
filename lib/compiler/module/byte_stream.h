// Writing and reading Polder's binary formats (program binaries, cache entries): little-endian fields one after
// another; a string or a list begins with its count.
//
// A structure is written and read as the tuple of its fields: the function `fields_of(structure)`, beside the code that uses it,
// returns references to them, so that both directions have the same list.
//
// A ByteReader never reads past its end: after the first failure every read returns zero and `ok()` is false.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace polder::compiler {

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;
// `T` is `Structure` or a constant one: `template <Same<Structure> T> auto fields_of(T& structure)` serves both directions.
template <class T, class Structure>
concept Same = std::is_same_v<std::remove_const_t<T>, Structure>;
template <class T>
concept HasFields = requires(T& structure) { fields_of(structure); };

class ByteWriter {
public:
    template <Plain T>
    void put(T value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void put(std::string_view text) {
        put(uint64_t{text.size()});
        bytes_.append(text);
    }
    void put(const std::vector<std::byte>& bytes) {
        put(std::string_view{reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    template <class T, size_t count>
    void put(const std::array<T, count>& values) {
        for (const T& value : values)
            put(value);
    }
    template <class T>
    void put(const std::optional<T>& value) {
        put(value.has_value());
        if (value)
            put(*value);
    }
    template <class T>
    void put(const std::vector<T>& list) {
        put(uint64_t{list.size()});
        for (const T& element : list)
            put(element);
    }
    template <HasFields T>
    void put(const T& structure) {
        std::apply([this](const auto&... field) { (this->put(field), ...); }, fields_of(structure));
    }
    void put_raw(std::string_view bytes) { bytes_.append(bytes); }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

class ByteReader {
public:
    explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

    template <Plain T>
    void get(T& value) {
        value = T{};
        if (const std::string_view raw = take(sizeof value); raw.size() == sizeof value)
            std::memcpy(&value, raw.data(), sizeof value);
    }
    void get(std::string& text) { text = take(get<uint64_t>()); }
    void get(std::vector<std::byte>& bytes) {
        const std::string_view raw = take(get<uint64_t>());
        const auto* first = reinterpret_cast<const std::byte*>(raw.data());
        bytes.assign(first, first + raw.size());
    }
    template <class T, size_t count>
    void get(std::array<T, count>& values) {
        for (T& value : values)
            get(value);
    }
    template <class T>
    void get(std::optional<T>& value) {
        value.reset();
        if (get<bool>())
            get(value.emplace());
    }
    template <class T>
    void get(std::vector<T>& list) {
        list.clear();
        for (uint64_t left = get_count(); left > 0 && ok(); --left)
            get(list.emplace_back());
    }
    template <HasFields T>
    void get(T& structure) {
        std::apply([this](auto&... field) { (this->get(field), ...); }, fields_of(structure));
    }
    template <class T>
    [[nodiscard]] T get() {
        T value{};
        get(value);
        return value;
    }
    [[nodiscard]] bool ok() const { return is_ok_; }
    [[nodiscard]] bool at_end() const { return rest_.empty(); }

private:
    // The count of a list. Fails when it is larger than the number of bytes left, so that damaged data cannot cause a huge
    // allocation: each element takes at least one byte.
    uint64_t get_count() {
        const auto count = get<uint64_t>();
        if (count > rest_.size())
            is_ok_ = false;
        return is_ok_ ? count : 0;
    }
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

template <HasFields T>
[[nodiscard]] std::string to_bytes(const T& structure) {
    ByteWriter out;
    out.put(structure);
    return out.bytes();
}

// Nothing when `bytes` is not exactly one structure.
template <HasFields T>
[[nodiscard]] std::optional<T> from_bytes(std::string_view bytes) {
    ByteReader in(bytes);
    T structure;
    in.get(structure);
    return in.ok() && in.at_end() ? std::optional{std::move(structure)} : std::nullopt;
}

}  // namespace polder::compiler
