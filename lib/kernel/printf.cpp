// Scanner reads conversion specifications from the format; Arguments reads packed arguments. Each conversion is formatted by C's
// snprintf in the "C" locale, element by element for vectors.
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <kernel/printf.h>
#include <locale.h>  // newlocale, uselocale

namespace polder::kernel {
namespace {

// C's own printf supports at least this width for one conversion. A larger one is an error of the program.
constexpr int width_max = 1 << 20;

enum class Length : uint8_t { none, hh, h, hl, l };

// One conversion specification: %[flags][width][.precision][vector][length]conversion
struct Conversion {
    std::string flags;
    int width = -1;
    int precision = -1;
    uint32_t vector_width = 1;
    Length length = Length::none;
    char letter = 0;
};

// Reads specifications off the front of the format.
class Scanner {
public:
    explicit Scanner(std::string_view rest) : rest_(rest) {}

    [[nodiscard]] bool at_end() const { return rest_.empty(); }

    // Everything up to the next '%'.
    std::string_view literal() {
        const size_t size = std::min(rest_.find('%'), rest_.size());
        const std::string_view text = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return text;
    }

    // The specification that begins with the '%' in front.
    std::optional<Conversion> conversion() {
        rest_.remove_prefix(1);
        Conversion result;
        result.flags = take_while("-+ #0");
        if (!number(result.width))
            return std::nullopt;
        if (take('.')) {
            result.precision = 0;
            if (!number(result.precision))
                return std::nullopt;
        }
        if (take('v') && !vector_width(result.vector_width))
            return std::nullopt;
        result.length = length();
        if (rest_.empty())
            return std::nullopt;
        result.letter = rest_.front();
        rest_.remove_prefix(1);
        return result;
    }

private:
    bool take(char wanted) {
        if (rest_.empty() || rest_.front() != wanted)
            return false;
        rest_.remove_prefix(1);
        return true;
    }

    std::string take_while(std::string_view set) {
        const size_t size = std::min(rest_.find_first_not_of(set), rest_.size());
        std::string text{rest_.substr(0, size)};
        rest_.remove_prefix(size);
        return text;
    }

    // Does not change `value` when there are no digits; false when the number is out of range.
    bool number(int& value) {
        const std::string digits = take_while("0123456789");
        if (digits.empty())
            return true;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return error == std::errc{} && value <= width_max;
    }

    bool vector_width(uint32_t& width) {
        int value = 0;
        if (!number(value) || (value != 2 && value != 3 && value != 4 && value != 8 && value != 16))
            return false;
        width = static_cast<uint32_t>(value);
        return true;
    }

    // C's other names for 64 bits are not in OpenCL C, but programs that were ported from C use them.
    Length length() {
        if (take('l')) {
            take('l');
            return Length::l;
        }
        if (take('z') || take('j') || take('t'))
            return Length::l;
        if (!take('h'))
            return Length::none;
        if (take('h'))
            return Length::hh;
        return take('l') ? Length::hl : Length::h;
    }

    std::string_view rest_;
};

float half_to_float(uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    const auto fraction = static_cast<float>(bits & 0x3ff);
    float magnitude = 0;
    if (exponent == 31)
        magnitude = fraction == 0 ? INFINITY : NAN;
    else
        magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) ? -magnitude : magnitude;
}

// Reads arguments in order.
class Arguments {
public:
    Arguments(std::span<const std::byte> rest, std::span<const std::byte> record) : rest_(rest), record_(record) {}

    // The next argument's first `bytes`; null when there are not so many left.
    const std::byte* next(size_t bytes) {
        if (bytes > rest_.size())
            return nullptr;
        const std::byte* data = rest_.data();
        rest_ = rest_.subspan(std::min(rest_.size(), (bytes + 7) / 8 * 8));
        return data;
    }

    // The text of a string whose slot holds `value`; nullopt when that is an offset outside the record.
    [[nodiscard]] std::optional<std::string_view> text(uint64_t value) const {
        if (value == 0)
            return "(null)";
        if (record_.empty())
            return reinterpret_cast<const char*>(value);
        if (value >= record_.size())
            return std::nullopt;
        const auto* const begin = reinterpret_cast<const char*>(record_.data() + value);
        return std::string_view{begin, strnlen(begin, record_.size() - value)};
    }

private:
    std::span<const std::byte> rest_;
    std::span<const std::byte> record_;
};

template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

bool is_signed_integer(char letter) { return letter == 'd' || letter == 'i'; }
bool is_unsigned_integer(char letter) { return letter != 0 && std::strchr("ouxX", letter) != nullptr; }
bool is_integer(char letter) { return is_signed_integer(letter) || is_unsigned_integer(letter); }
bool is_floating(char letter) { return letter != 0 && std::strchr("fFeEgGaA", letter) != nullptr; }

// The specification as C's printf wants it, with its length modifier replaced.
std::string c_format(const Conversion& conversion, const char* c_length) {
    std::string text = "%" + conversion.flags;
    if (conversion.width >= 0)
        text += std::to_string(conversion.width);
    if (conversion.precision >= 0)
        text += "." + std::to_string(conversion.precision);
    return text + c_length + conversion.letter;
}

// C's printf follows the thread's locale ("1,5"); OpenCL's does not. Changes this thread's alone, and puts it back.
class CLocale {
public:
    CLocale() : before_(uselocale(c_locale())) {}
    ~CLocale() { uselocale(before_); }
    CLocale(const CLocale&) = delete;
    CLocale& operator=(const CLocale&) = delete;

private:
    // Never freed: kernels may print while the process exits. Zero, which changes nothing, when there is no memory.
    static locale_t c_locale() {
        static const locale_t instance = newlocale(LC_ALL_MASK, "C", nullptr);
        return instance;
    }
    locale_t before_;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
template <class T>
bool append(std::string& out, const std::string& format, T value) {
    const int size = std::snprintf(nullptr, 0, format.c_str(), value);
    if (size < 0)
        return false;
    const size_t before = out.size();
    out.resize(before + static_cast<size_t>(size) + 1);
    std::snprintf(out.data() + before, static_cast<size_t>(size) + 1, format.c_str(), value);
    out.pop_back();
    return true;
}
#pragma GCC diagnostic pop

// Bytes of one element as it lies in memory. Scalars narrower than int were promoted.
size_t element_bytes(const Conversion& conversion) {
    const bool is_vector = conversion.vector_width > 1;
    if (is_floating(conversion.letter)) {
        if (!is_vector || conversion.length == Length::l)
            return 8;
        return conversion.length == Length::h ? 2 : 4;
    }
    switch (conversion.length) {
    case Length::l: return 8;
    case Length::hh: return is_vector ? 1 : 4;
    case Length::h: return is_vector ? 2 : 4;
    default: return 4;
    }
}

long long load_signed(const std::byte* from, const Conversion& conversion) {
    switch (conversion.length) {
    case Length::l: return load<int64_t>(from);
    case Length::hh: return load<int8_t>(from);
    case Length::h: return load<int16_t>(from);
    default: return load<int32_t>(from);
    }
}

unsigned long long load_unsigned(const std::byte* from, const Conversion& conversion) {
    switch (conversion.length) {
    case Length::l: return load<uint64_t>(from);
    case Length::hh: return load<uint8_t>(from);
    case Length::h: return load<uint16_t>(from);
    default: return load<uint32_t>(from);
    }
}

double load_floating(const std::byte* from, size_t bytes) {
    if (bytes == 8)
        return load<double>(from);
    return bytes == 4 ? load<float>(from) : half_to_float(load<uint16_t>(from));
}

bool append_number(std::string& out, const Conversion& conversion, const std::byte* from) {
    if (is_signed_integer(conversion.letter))
        return append(out, c_format(conversion, "ll"), load_signed(from, conversion));
    if (is_unsigned_integer(conversion.letter))
        return append(out, c_format(conversion, "ll"), load_unsigned(from, conversion));
    return append(out, c_format(conversion, ""), load_floating(from, element_bytes(conversion)));
}

// Elements are separated by commas, each with the whole specification's flags, width and precision.
bool append_numbers(std::string& out, const Conversion& conversion, Arguments& arguments) {
    const size_t element = element_bytes(conversion);
    const uint32_t room = conversion.vector_width == 3 ? 4 : conversion.vector_width;
    const std::byte* from = arguments.next(element * room);
    if (from == nullptr)
        return false;
    for (uint32_t i = 0; i < conversion.vector_width; ++i) {
        if (i > 0)
            out += ',';
        if (!append_number(out, conversion, from + i * element))
            return false;
    }
    return true;
}

// %v4c is not in OpenCL C, but Clang's warning about %v4hhd of characters proposes it.
bool append_characters(std::string& out, const Conversion& conversion, Arguments& arguments) {
    const std::byte* from = arguments.next(conversion.vector_width == 3 ? 4 : conversion.vector_width);
    if (from == nullptr)
        return false;
    for (uint32_t i = 0; i < conversion.vector_width; ++i) {
        if (i > 0)
            out += ',';
        if (!append(out, c_format(conversion, ""), load<uint8_t>(from + i)))
            return false;
    }
    return true;
}

bool append_other(std::string& out, const Conversion& conversion, Arguments& arguments) {
    if (conversion.length != Length::none || conversion.vector_width != 1)
        return false;
    const std::byte* from = arguments.next(conversion.letter == 'c' ? 4 : 8);
    if (from == nullptr)
        return false;
    switch (conversion.letter) {
    case 'c': return append(out, c_format(conversion, ""), load<int32_t>(from));
    case 'p': return append(out, c_format(conversion, ""), load<const void*>(from));
    case 's': {
        const auto text = arguments.text(load<uint64_t>(from));
        return text && append(out, c_format(conversion, ""), std::string{*text}.c_str());
    }
    default: return false;
    }
}

bool append_conversion(std::string& out, const Conversion& conversion, Arguments& arguments) {
    if (conversion.letter == '%') {
        out += '%';
        return true;
    }
    if (is_floating(conversion.letter) && conversion.length == Length::hh)
        return false;
    if (is_integer(conversion.letter) || is_floating(conversion.letter))
        return append_numbers(out, conversion, arguments);
    if (conversion.letter == 'c' && conversion.vector_width > 1 &&
        (conversion.length == Length::none || conversion.length == Length::hh))
        return append_characters(out, conversion, arguments);
    return append_other(out, conversion, arguments);
}

}  // namespace

std::optional<std::string> format_text(std::string_view format, std::span<const std::byte> argument_bytes,
                                       std::span<const std::byte> record) {
    const CLocale locale;
    std::string out;
    Scanner scanner{format};
    Arguments arguments{argument_bytes, record};
    for (;;) {
        out += scanner.literal();
        if (scanner.at_end())
            return out;
        const std::optional<Conversion> conversion = scanner.conversion();
        if (!conversion || !append_conversion(out, *conversion, arguments))
            return std::nullopt;
    }
}

}  // namespace polder::kernel

extern "C" int polder_printf(const polder::LaunchContext* context, const char* format, const std::byte* arguments,
                             size_t arguments_size) noexcept try {
    const auto text = polder::kernel::format_text(format, {arguments, arguments_size});
    if (!text)
        return -1;
    context->print(context->print_user, text->data(), text->size());
    return 0;
} catch (...) {  // out of memory: a negative result is all that a kernel sees
    return -1;
}
