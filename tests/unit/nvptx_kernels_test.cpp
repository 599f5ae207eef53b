// The benchmarks' kernels in PTX: each was once a hard case.
#include "ptx_support.h"

#include <algorithm>
#include <iterator>

namespace polder::compiler::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> kernel_files() {
    std::vector<std::string> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(POLDER_TEST_KERNELS))
        if (entry.path().extension() == ".cl")
            files.push_back(entry.path().stem().string());
    std::ranges::sort(files);
    return files;
}

class NvptxKernels : public testing::TestWithParam<std::string> {};

TEST_P(NvptxKernels, AreAssembledForEveryProcessor) {
    std::ifstream file(fs::path{POLDER_TEST_KERNELS} / (GetParam() + ".cl"));
    const std::string source{std::istreambuf_iterator<char>(file), {}};
    const Outcome built = build(source, "-cl-std=CL3.0");
    ASSERT_EQ(built.status, Status::success) << built.log;
    ASSERT_FALSE(built.module->kernels().empty());
    expect_ptx(built.module);
}

INSTANTIATE_TEST_SUITE_P(Bench, NvptxKernels, testing::ValuesIn(kernel_files()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace polder::compiler::test
