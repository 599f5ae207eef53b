// Machine code of another implementation, in program binaries and from the application (polder/program_binaries.h).
#include "proxy_driver.h"

#include <checking/checking_driver.h>
#include <polder/program_binaries.h>

namespace polder::conformance {
namespace {

using Kind = driver::KernelParameter::Kind;

class ProxyBinaries : public ProxyDriver {
protected:
    driver::ProgramBinaries& binaries() { return *device().program_binaries(); }
    static uint64_t calls(const char* call) { return fake_icd::find<fake_icd::Calls>("fake_icd_calls")(call); }
    static int64_t live() { return fake_icd::find<fake_icd::Live>("fake_icd_live")(); }

    enum class Source : uint8_t { there, absent };
    Result<std::unique_ptr<driver::LoadedKernel>> load(std::string_view machine_code, Source source = Source::there) {
        static uint64_t id = 1u << 29;
        program_ = {.id = ++id, .units = {}, .is_build = true};
        if (source == Source::there)
            program_.units.push_back({.text = "kernel void k(global int* a) {}"});
        driver::TargetCode code;
        code.format = driver::CodeFormat::opencl_c;
        code.code = machine_code;
        code.program = &program_;
        code.entry = "k";
        code.parameters = parameters_;
        return device().load(code);
    }
    std::string machine_code() {
        const auto kernel = load("");
        EXPECT_TRUE(kernel.has_value());
        return binaries().machine_code_of(**kernel);
    }
    Result<driver::ProgramBinaries::Binary> read(std::string_view text) {
        const std::string bytes = "fake binary\n" + std::string(text);
        return binaries().read(std::as_bytes(std::span(bytes)));
    }

private:
    const std::vector<driver::KernelParameter> parameters_{{Kind::global_pointer, 0, 8}};
    driver::SourceProgram program_;
};

TEST_F(ProxyBinaries, MachineCodeSavesTheOtherCompilersWork) {
    const std::string code = machine_code();
    EXPECT_NE(code.find("fake binary"), code.npos);
    const uint64_t sources = calls("clCreateProgramWithSource");
    const uint64_t binaries_before = calls("clCreateProgramWithBinary");
    for (const Source source : {Source::there, Source::absent}) {
        const auto kernel = load(code, source);
        ASSERT_TRUE(kernel.has_value()) << kernel.error().detail();
        EXPECT_EQ(binaries().machine_code_of(**kernel), code);
    }
    EXPECT_EQ(calls("clCreateProgramWithSource"), sources);
    EXPECT_EQ(calls("clCreateProgramWithBinary"), binaries_before + 2);
}

TEST_F(ProxyBinaries, MachineCodeOfAnotherVersionIsNotPassedOn) {
    std::string code = machine_code();
    code[code.find('\0') - 1] ^= 1;  // of the name of who made it
    const uint64_t before = calls("clCreateProgramWithBinary");
    EXPECT_TRUE(load(code).has_value());
    const auto refused = load(code, Source::absent);
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().detail().find("built by another implementation or version"), std::string_view::npos);
    EXPECT_EQ(calls("clCreateProgramWithBinary"), before);
}

TEST_F(ProxyBinaries, MachineCodeThatIsRefusedIsBuiltFromSource) {
    const std::string code = machine_code();
    std::string damaged = code;
    damaged[damaged.find("fake binary")] = 'F';
    EXPECT_TRUE(load(damaged).has_value());
    EXPECT_FALSE(load(damaged, Source::absent).has_value());
    for (const char* const call : {"clCreateProgramWithBinary", "clBuildProgram"}) {
        fail_call(call, CL_INVALID_BINARY);
        EXPECT_FALSE(load(code, Source::absent).has_value()) << call;
        mend(call);
    }
    EXPECT_TRUE(load("no name").has_value());
}

TEST_F(ProxyBinaries, AnImplementationThatGivesNoneHasNone) {
    const auto kernel = load("");
    ASSERT_TRUE(kernel.has_value());
    fail_call("clGetProgramInfo", CL_OUT_OF_HOST_MEMORY);
    EXPECT_EQ(binaries().machine_code_of(**kernel), "");
}

TEST_F(ProxyBinaries, ACheckedDeviceHasTheAbilityOfItsDevice) {
    const auto checked = [](const char* name, const char* parameters) {
        static std::vector<std::unique_ptr<driver::Driver>> drivers;
        drivers.push_back(devices::make_checking_driver(driver_named(name)));
        return std::move(*drivers.back()->open(0, SpaceId{9}, parameters));
    };
    const auto proxy = checked("proxy", "memory=64M,icd=" POLDER_FAKE_ICD);
    driver::ProgramBinaries* const wrapped = proxy->program_binaries();
    ASSERT_NE(wrapped, nullptr);
    const std::string bytes = "fake binary\nkernel void k() {}";
    EXPECT_TRUE(wrapped->read(std::as_bytes(std::span(bytes))).has_value());
    EXPECT_EQ(checked("discrete", "")->program_binaries(), nullptr);
}

TEST_F(ProxyBinaries, ParametersAreFoundByTrial) {
    const auto read_binary = read("kernel void second(char c, long l, float4 v, struct12 s) {} "
                                  "kernel void first(global int* a, local int* b, int c) {}");
    ASSERT_TRUE(read_binary.has_value()) << read_binary.error().detail();
    ASSERT_EQ(read_binary->kernels.size(), 2u);
    const auto parameters = [&](size_t kernel) {
        std::vector<std::pair<Kind, uint32_t>> list;
        for (const auto& parameter : read_binary->kernels[kernel].parameters)
            list.emplace_back(parameter.kind, parameter.size);
        return list;
    };
    using List = std::vector<std::pair<Kind, uint32_t>>;
    EXPECT_EQ(read_binary->kernels[0].name, "first");
    EXPECT_EQ(parameters(0), (List{{Kind::global_pointer, 8}, {Kind::local_pointer, 8}, {Kind::value, 4}}));
    EXPECT_EQ(read_binary->kernels[1].name, "second");
    EXPECT_EQ(parameters(1), (List{{Kind::value, 1}, {Kind::value, 8}, {Kind::value, 16}, {Kind::value, 12}}));
}

TEST_F(ProxyBinaries, ImagesAndSamplersAreFoundByTrial) {
    using driver::ImageType;
    using driver::ImageUse;
    static_cast<void>(device());
    const int64_t before = live();
    const auto read_binary =
        read("kernel void k(read_only image2d_t a, write_only image3d_t b, read_write image2d_array_t c, sampler_t s, "
             "read_only image1d_t d, write_only image1d_array_t e, read_only image1d_buffer_t f, int g) {}");
    ASSERT_TRUE(read_binary.has_value()) << read_binary.error().detail();
    const auto& parameters = read_binary->kernels.at(0).parameters;
    ASSERT_EQ(parameters.size(), 8u);
    const std::pair<size_t, std::pair<ImageType, ImageUse>> images[] = {
        {0, {ImageType::image_2d, ImageUse::read}},       {1, {ImageType::image_3d, ImageUse::write}},
        {2, {ImageType::array_2d, ImageUse::read_write}}, {4, {ImageType::image_1d, ImageUse::read}},
        {5, {ImageType::array_1d, ImageUse::write}},      {6, {ImageType::buffer_1d, ImageUse::read}}};
    for (const auto& [index, image] : images) {
        EXPECT_EQ(parameters[index].kind, Kind::image) << index;
        EXPECT_EQ(std::pair(parameters[index].image_type, parameters[index].image_use), image) << index;
    }
    EXPECT_EQ(parameters[3].kind, Kind::sampler);
    EXPECT_EQ(parameters[7].kind, Kind::value);
    EXPECT_EQ(live(), before);
    // Without images to try, the type is not known.
    fail_call("clCreateImage", CL_OUT_OF_RESOURCES);
    EXPECT_FALSE(read("kernel void k(read_only image2d_t a) {}").has_value());
    mend("clCreateImage");
}

TEST_F(ProxyBinaries, KernelsWhoseParametersAreNotKnownAreRefused) {
    static_cast<void>(device());
    const int64_t before = live();
    for (const char* const parameter : {"any image", "struct s"}) {
        const auto refused = read(std::string("kernel void k(int a, ") + parameter + ") {}");
        ASSERT_FALSE(refused.has_value()) << parameter;
        EXPECT_EQ(refused.error().status(), Status::invalid_binary);
        EXPECT_NE(refused.error().detail().find("parameter 1 of kernel k"), std::string_view::npos);
    }
    const auto nonsense = std::as_bytes(std::span("nonsense"));
    EXPECT_FALSE(binaries().read(nonsense).has_value());
    EXPECT_FALSE(read("kernel void k() { refused }").has_value());
    for (const char* const call : {"clGetProgramInfo", "clCreateKernel"}) {
        fail_call(call, CL_OUT_OF_RESOURCES);
        EXPECT_FALSE(read("kernel void k() {}").has_value()) << call;
        mend(call);
    }
    EXPECT_EQ(live(), before);
}

} // namespace
} // namespace polder::conformance
