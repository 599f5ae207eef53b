// The formatter behind OpenCL C's printf, against the C library's own.
#include <clocale>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <kernel/printf.h>
#include <limits>
#include <string>
#include <vector>

using polder::kernel::format_text;

namespace {

// Packs arguments as the compiler does: each at the next multiple of 8 bytes.
class Packed {
public:
    template <class T>
    Packed& add(T value) {
        return add_bytes(&value, sizeof value);
    }
    // A vector; three elements take the room of four.
    template <class T>
    Packed& vector(std::vector<T> elements) {
        if (elements.size() == 3)
            elements.push_back(T{});
        return add_bytes(elements.data(), elements.size() * sizeof(T));
    }
    [[nodiscard]] std::string text(std::string_view format) const {
        return format_text(format, bytes_).value_or("<failed>");
    }

private:
    Packed& add_bytes(const void* data, size_t size) {
        const size_t before = bytes_.size();
        bytes_.resize(before + (size + 7) / 8 * 8);
        std::memcpy(bytes_.data() + before, data, size);
        return *this;
    }
    std::vector<std::byte> bytes_;
};

__attribute__((format(printf, 1, 2))) std::string c_text(const char* format, ...) {
    char text[8192];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

std::string text(std::string_view format) { return Packed{}.text(format); }

TEST(Printf, TextWithoutConversions_IsUnchanged) {
    EXPECT_EQ(text(""), "");
    EXPECT_EQ(text("plain text\n"), "plain text\n");
    EXPECT_EQ(text("100%% of %%d"), "100% of %d");
}

TEST(Printf, Integers_PrintAsTheCLibraryDoes) {
    const std::string flags[] = {"", "-", "+", " ", "#", "0", "-+", "#0", "+0", " -"};
    const std::string widths[] = {"", "1", "12", ".0", ".5", "12.5"};
    for (const char letter : std::string("dioxXu"))
        for (const std::string& flag : flags)
            for (const std::string& width : widths)
                for (const int value :
                     {0, 1, -1, 42, -12345, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
                    const std::string format = "%" + flag + width + letter;
                    char expected[256];
                    std::snprintf(expected, sizeof expected, format.c_str(), value);
                    EXPECT_EQ(Packed{}.add(value).text(format), expected) << format;
                }
}

TEST(Printf, LengthModifiersOfScalars_SelectTheTypesWidth) {
    EXPECT_EQ(Packed{}.add(300).text("%hhd"), "44");
    EXPECT_EQ(Packed{}.add(-1).text("%hhu"), "255");
    EXPECT_EQ(Packed{}.add(70000).text("%hd"), "4464");
    EXPECT_EQ(Packed{}.add(-1).text("%hx"), "ffff");
    EXPECT_EQ(Packed{}.add(int64_t{-5000000000}).text("%ld"), "-5000000000");
    EXPECT_EQ(Packed{}.add(~uint64_t{0}).text("%lx"), "ffffffffffffffff");
}

TEST(Printf, LengthModifiersOfCAlone_Mean64Bits) {
    const int64_t number = -(int64_t{1} << 40);
    EXPECT_EQ(Packed{}.add(number).add(~uint64_t{0}).text("%lld %llu"), "-1099511627776 18446744073709551615");
    EXPECT_EQ(Packed{}.add(uint64_t{7}).add(number).add(number).text("%zu %jd %td"), "7 -1099511627776 -1099511627776");
    EXPECT_EQ(Packed{}.vector(std::vector<int64_t>{1, -2}).text("%v2lld"), "1,-2");
}

TEST(Printf, FloatingPoint_PrintsAsTheCLibraryDoes) {
    const std::string flags[] = {"", "-", "+", " ", "#", "0", "-+", "#0"};
    const std::string widths[] = {"", "20", ".0", ".3", "14.2", ".17"};
    const double values[] = {0.0,
                             -0.0,
                             1.0,
                             -1.5,
                             3.14159265358979,
                             1e-300,
                             1e300,
                             123456789.125,
                             0.5,
                             std::numeric_limits<double>::denorm_min(),
                             INFINITY,
                             -INFINITY,
                             NAN};
    for (const char letter : std::string("fFeEgGaA"))
        for (const std::string& flag : flags)
            for (const std::string& width : widths)
                for (const double value : values) {
                    const std::string format = "%" + flag + width + letter;
                    char expected[1024];
                    std::snprintf(expected, sizeof expected, format.c_str(), value);
                    EXPECT_EQ(Packed{}.add(value).text(format), expected) << format;
                }
}

TEST(Printf, IntegerVectors_PrintElementsSeparatedByCommas) {
    EXPECT_EQ(Packed{}.vector<int32_t>({1, -2}).text("%v2hld"), "1,-2");
    EXPECT_EQ(Packed{}.vector<int8_t>({1, -2, 3, -4}).text("%v4hhd"), "1,-2,3,-4");
    EXPECT_EQ(Packed{}.vector<uint8_t>({255, 16, 0}).text("%v3hhx"), "ff,10,0");
    EXPECT_EQ(Packed{}.vector<int16_t>({-1, 2, 3, 4, 5, 6, 7, 8}).text("%v8hd"), "-1,2,3,4,5,6,7,8");
    EXPECT_EQ(Packed{}.vector<int64_t>({-5000000000, 7}).text("%v2ld"), "-5000000000,7");
    EXPECT_EQ(Packed{}.vector<uint32_t>({10, 11, 12, 13}).text("%#v4hlx"), "0xa,0xb,0xc,0xd");
    EXPECT_EQ(Packed{}.vector<int32_t>(std::vector<int32_t>(16, 7)).text("%3v16hli").size(), 16u * 3 + 15);
}

TEST(Printf, FloatVectors_ApplyFlagsAndWidthToEveryElement) {
    EXPECT_EQ(Packed{}.vector<float>({1, 2.5, -3, 4}).text("%v4hlf"), "1.000000,2.500000,-3.000000,4.000000");
    EXPECT_EQ(Packed{}.vector<float>({1, 2, 3, 4}).text("%6.2v4hlf"), "  1.00,  2.00,  3.00,  4.00");
    EXPECT_EQ(Packed{}.vector<float>({1, 2, 3}).text("%2.2v3hlf"), "1.00,2.00,3.00");
    EXPECT_EQ(Packed{}.vector<double>({0.1, 1e100}).text("%v2lg"), "0.1,1e+100");
    EXPECT_EQ(Packed{}.vector<uint16_t>({0x3c00, 0xc000, 0x7c00, 0x0001}).text("%v4hg"), "1,-2,inf,5.96046e-08");
}

TEST(Printf, ArgumentsAfterAVector_AreFoundBehindIt) {
    EXPECT_EQ(Packed{}.vector<int8_t>({1, 2, 3}).add(7).vector<double>({1, 2, 3}).add(8.5).text("%v3hhd|%d|%v3lg|%g"),
              "1,2,3|7|1,2,3|8.5");
}

TEST(Printf, StringsCharactersAndPointers_PrintAsTheCLibraryDoes) {
    const char* word = "polder";
    EXPECT_EQ(Packed{}.add(word).text("[%s]"), "[polder]");
    EXPECT_EQ(Packed{}.add(word).text("[%10s]"), "[    polder]");
    EXPECT_EQ(Packed{}.add(word).text("[%-10.3s]"), "[pol       ]");
    EXPECT_EQ(Packed{}.add<const char*>(nullptr).text("[%s]"), "[(null)]");
    EXPECT_EQ(Packed{}.add(int{'x'}).text("[%c%%]"), "[x%]");
    EXPECT_EQ(Packed{}.vector<int8_t>({'a', 'b', 'c', 'd'}).text("[%v4c]"), "[a,b,c,d]");
    EXPECT_EQ(Packed{}.vector<int8_t>({'x', 'y', 'z'}).add(5).text("[%2v3hhc|%d]"), "[ x, y, z|5]");
    EXPECT_EQ(Packed{}.add(word).text("%p"), c_text("%p", static_cast<const void*>(word)));
}

TEST(Printf, MalformedFormats_FailInsteadOfPrinting) {
    for (const char* format : {"%", "%-", "%5", "%.", "%v", "%v5d", "%v4", "%k", "%n", "%hhf", "%ls", "%v4s", "%lc",
                               "%v4hlc", "%v4lc", "%99999999999d", "%.99999999999f", "%*d", "%h"})
        EXPECT_EQ(Packed{}.add(1).add(2).vector<int>({1, 2, 3, 4}).text(format), "<failed>") << format;
}

TEST(Printf, MoreConversionsThanArguments_FailInsteadOfReadingBeyond) {
    EXPECT_EQ(text("%d"), "<failed>");
    EXPECT_EQ(Packed{}.add(1).text("%d %d"), "<failed>");
    EXPECT_EQ(Packed{}.add(1).text("%v8hld"), "<failed>");
    EXPECT_EQ(Packed{}.add(1).text("%v16c"), "<failed>");
    EXPECT_EQ(Packed{}.add("one").text("%s %s"), "<failed>");
}

// A locale whose decimal point is a comma, made for the test; empty when the system cannot make one.
std::string comma_locale() {
    const std::string place = testing::TempDir() + "polder-locales";
    const std::string make =
        "mkdir -p " + place + " && localedef --no-archive -i de_DE -f UTF-8 " + place + "/de_DE.UTF-8 >/dev/null 2>&1";
    // A fixed command. NOLINTNEXTLINE(bugprone-command-processor)
    if (std::system(make.c_str()) != 0)
        return {};
    setenv("LOCPATH", place.c_str(), 1);
    return "de_DE.UTF-8";
}

TEST(Printf, TheApplicationsLocale_ChangesNothing) {
    const std::string name = comma_locale();
    if (name.empty() || std::setlocale(LC_ALL, name.c_str()) == nullptr)
        GTEST_SKIP() << "no locale with a decimal comma";
    char own[8];
    std::snprintf(own, sizeof own, "%.1f", 1.5);
    const std::string kernels = Packed{}.add(1.5).text("%.1f");
    char own_after[8];
    std::snprintf(own_after, sizeof own_after, "%.1f", 1.5);
    std::setlocale(LC_ALL, "C");
    EXPECT_STREQ(own, "1,5");
    EXPECT_EQ(kernels, "1.5");
    EXPECT_STREQ(own_after, "1,5");
}

TEST(Printf, CallFromAKernel_PrintsOnceAndReturnsZero) {
    std::vector<std::string> printed;
    polder::LaunchContext context{};
    context.print = [](void* user, const char* data, size_t size) {
        static_cast<std::vector<std::string>*>(user)->emplace_back(data, size);
    };
    context.print_user = &printed;
    const int arguments[2] = {5, 0};
    const auto* bytes = reinterpret_cast<const std::byte*>(arguments);
    EXPECT_EQ(polder_printf(&context, "a%db", bytes, sizeof arguments), 0);
    EXPECT_EQ(polder_printf(&context, "%d %d", bytes, sizeof arguments), -1);
    EXPECT_EQ(printed, std::vector<std::string>{"a5b"});
}

} // namespace
