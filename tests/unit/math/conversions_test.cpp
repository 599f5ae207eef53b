// All explicit conversions between arithmetic types, with all rounding modes, saturated and not.
#include "conversions.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <gtest/gtest.h>

namespace polder::math {
namespace {

const std::vector<std::string> type_names = {"char", "uchar", "short", "ushort", "int",   "uint",
                                             "long", "ulong", "half",  "float",  "double"};

class Conversions : public ::testing::TestWithParam<std::string> {};

TEST_P(Conversions, OfScalarsFromEveryType_RoundAndSaturateAsAsked) {
    const ConversionReport report = check_conversions(type_names, GetParam(), 1);
    EXPECT_GE(report.conversions, 50u);
    EXPECT_EQ(report.failures, "");
}

TEST_P(Conversions, OfVectorsFromEveryType_RoundAndSaturateAsAsked) {
    const ConversionReport report = check_conversions(type_names, GetParam(), 4);
    EXPECT_GE(report.conversions, 50u);
    EXPECT_EQ(report.failures, "");
}

// Each pair of types in one of the other widths; in all of them, which takes minutes, with POLDER_ALL_CONVERSIONS=1.
TEST_P(Conversions, OfVectorsOfOtherWidths_RoundAndSaturateAsAsked) {
    constexpr std::array widths = {2, 3, 8, 16};
    const bool is_complete = std::getenv("POLDER_ALL_CONVERSIONS") != nullptr;
    const auto row =
        static_cast<size_t>(std::find(type_names.begin(), type_names.end(), GetParam()) - type_names.begin());
    for (size_t w = 0; w < widths.size(); ++w) {
        std::vector<std::string> sources;
        for (size_t column = 0; column < type_names.size(); ++column)
            if (is_complete || (row + column) % widths.size() == w)
                sources.push_back(type_names[column]);
        const ConversionReport report = check_conversions(sources, GetParam(), widths[w]);
        EXPECT_GE(report.conversions, 5 * sources.size());
        EXPECT_EQ(report.failures, "");
    }
}

INSTANTIATE_TEST_SUITE_P(To, Conversions, ::testing::ValuesIn(type_names),
                         [](const auto& instance) { return instance.param; });

} // namespace
} // namespace polder::math
