#include "../../lib/base/options_table.h"

#include <base/options.h>

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <vector>

namespace polder::options {
namespace {

struct Reading {
    Values values;
    std::vector<std::string> warnings;
};

Reading read_variables(const std::map<std::string, std::string>& variables) {
    Reading reading;
    reading.values = read(
        [&](const char* name) {
            const auto found = variables.find(name);
            return found == variables.end() ? nullptr : found->second.c_str();
        },
        [&](const std::string& message) { reading.warnings.push_back(message); });
    return reading;
}

TEST(Options, NothingSet_GivesTheDefaultsWithoutWarning) {
    const Reading reading = read_variables({});
    EXPECT_TRUE(reading.warnings.empty());
    EXPECT_FALSE(reading.values.devices);
    EXPECT_TRUE(reading.values.kernel_cache);
    EXPECT_FALSE(reading.values.affinity);
    EXPECT_FALSE(reading.values.max_work_group_size);
    EXPECT_EQ(reading.values.startup_delay_s, 0u);
    EXPECT_EQ(reading.values.cache_directory, "");
}

TEST(Options, WellFormedValues_AreTaken) {
    const Reading reading = read_variables({{"POCL_DEVICES", "cpu discrete"},
                                            {"POCL_KERNEL_CACHE", "0"},
                                            {"POCL_AFFINITY", "1"},
                                            {"POCL_CPU_MAX_CU_COUNT", "3"},
                                            {"POCL_CPU_LOCAL_MEM_SIZE", "256K"},
                                            {"POCL_CPU_VENDOR_ID_OVERRIDE", "0x8086"},
                                            {"POCL_STARTUP_DELAY", "0"},
                                            {"POCL_BITCODE_FINALIZER", "opt %(bc) -o %(bc)"}});
    EXPECT_TRUE(reading.warnings.empty());
    EXPECT_EQ(reading.values.devices, "cpu discrete");
    EXPECT_FALSE(reading.values.kernel_cache);
    EXPECT_TRUE(reading.values.affinity);
    EXPECT_EQ(reading.values.cpu_max_compute_units, 3u);
    EXPECT_EQ(reading.values.cpu_local_memory_bytes, 256u << 10);
    EXPECT_EQ(reading.values.cpu_vendor_id_override, 0x8086u);
    EXPECT_EQ(reading.values.bitcode_finalizer, "opt %(bc) -o %(bc)");
}

TEST(Options, MalformedValue_WarnsOnceNamingItAndTakesTheDefault) {
    const std::pair<const char*, const char*> malformed[] = {
        {"POCL_KERNEL_CACHE", "maybe"},
        {"POCL_AFFINITY", "2"},
        {"POCL_CPU_MAX_CU_COUNT", "-1"},
        {"POCL_CPU_MAX_CU_COUNT", "0"},
        {"POCL_MAX_COMPUTE_UNITS", "4294967296"},
        {"POCL_MAX_WORK_GROUP_SIZE", "64 "},
        {"POCL_MEMORY_LIMIT", "8X"},
        {"POCL_MEMORY_LIMIT", "99999999999"},
        {"POCL_CPU_LOCAL_MEM_SIZE", "K"},
        {"POCL_CPU_VENDOR_ID_OVERRIDE", "0x"},
        {"POCL_STARTUP_DELAY", "soon"},
    };
    for (const auto& [name, value] : malformed) {
        const Reading reading = read_variables({{name, value}});
        ASSERT_EQ(reading.warnings.size(), 1u) << name << "=" << value;
        EXPECT_NE(reading.warnings[0].find(name), std::string::npos);
        EXPECT_NE(reading.warnings[0].find(value), std::string::npos);
        const Values& values = reading.values;
        EXPECT_TRUE(values.kernel_cache);
        EXPECT_FALSE(values.affinity);
        EXPECT_FALSE(values.cpu_max_compute_units || values.max_compute_units || values.max_work_group_size);
        EXPECT_FALSE(values.memory_limit_bytes || values.cpu_local_memory_bytes);
        EXPECT_FALSE(values.cpu_vendor_id_override);
        EXPECT_EQ(values.startup_delay_s, 0u);
    }
}

TEST(Options, EmptyValue_MeansTheDefault) {
    const Reading reading = read_variables({{"POCL_DEVICES", ""}, {"POCL_KERNEL_CACHE", ""}});
    EXPECT_TRUE(reading.warnings.empty());
    EXPECT_FALSE(reading.values.devices);
    EXPECT_TRUE(reading.values.kernel_cache);
}

TEST(Options, MemoryLimit_CountsPlainNumbersInGibibytes) {
    EXPECT_EQ(read_variables({{"POCL_MEMORY_LIMIT", "2"}}).values.memory_limit_bytes, uint64_t{2} << 30);
    EXPECT_EQ(read_variables({{"POCL_MEMORY_LIMIT", "512M"}}).values.memory_limit_bytes, uint64_t{512} << 20);
}

TEST(Options, CacheDirectory_FollowsPoclThenXdgThenHome) {
    std::map<std::string, std::string> variables{{"HOME", "/home/u"}};
    EXPECT_EQ(read_variables(variables).values.cache_directory, "/home/u/.cache/polder");
    variables["XDG_CACHE_HOME"] = "/xdg";
    EXPECT_EQ(read_variables(variables).values.cache_directory, "/xdg/polder");
    variables["XDG_CACHE_HOME"] = "relative"; // the XDG specification: to be ignored
    EXPECT_EQ(read_variables(variables).values.cache_directory, "/home/u/.cache/polder");
    variables["POCL_CACHE_DIR"] = "/own";
    EXPECT_EQ(read_variables(variables).values.cache_directory, "/own");
}

TEST(Options, ParseBytes_ReadsSuffixesAndRefusesWhatDoesNotFit) {
    EXPECT_EQ(parse_bytes("0"), 0u);
    EXPECT_EQ(parse_bytes("256M"), uint64_t{256} << 20);
    EXPECT_EQ(parse_bytes("16g"), uint64_t{16} << 30);
    EXPECT_EQ(parse_bytes("1T"), uint64_t{1} << 40);
    EXPECT_EQ(parse_bytes("18446744073709551615"), UINT64_MAX);
    for (const char* const text : {"", "K", "-1", "1.5G", "1KB", " 1", "18446744073709551616", "16777216T"})
        EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
}

TEST(Options, ParametersVariable_IsTheUpperCaseDriverAndItsIndex) {
    EXPECT_EQ(parameters_variable("discrete", 1), "POCL_DISCRETE1_PARAMETERS");
}

TEST(Options, EnvironmentDocument_IsTheTable) {
    const std::ifstream file(POLDER_ENVIRONMENT_DOCUMENT);
    std::stringstream document;
    document << file.rdbuf();
    EXPECT_EQ(document.str(), table_as_markdown()) << "run: ninja -C build environment-doc";
}

} // namespace
} // namespace polder::options
