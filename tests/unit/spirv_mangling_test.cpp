// Names of built-in functions, against those that Clang gives them for spir64 (read off its output).
#include "frontend/spirv/mangling.h"

#include <deque>
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>

namespace polder::compiler::spirv {
namespace {

class Mangling : public testing::Test {
protected:
    uint32_t add(spv::Op opcode, std::vector<uint32_t> operands) {
        words.push_back(std::move(operands));
        const Instruction instruction{.opcode = opcode, .result = ++last, .operands = words.back()};
        EXPECT_TRUE(types.add(instruction, 0, false, ""));
        return last;
    }
    uint32_t pointer(spv::StorageClass storage, uint32_t type) {
        return add(spv::OpTypePointer, {static_cast<uint32_t>(storage), type});
    }
    [[nodiscard]] MangledName name(std::string_view function) const { return {function, types}; }

    llvm::LLVMContext context;
    Types types{context};
    std::deque<std::vector<uint32_t>> words;
    uint32_t last = 0;
    const uint32_t int_ = add(spv::OpTypeInt, {32, 0}), char_ = add(spv::OpTypeInt, {8, 0}),
                   long_ = add(spv::OpTypeInt, {64, 0}), float_ = add(spv::OpTypeFloat, {32}),
                   half_ = add(spv::OpTypeFloat, {16}), float4 = add(spv::OpTypeVector, {float_, 4}),
                   int4 = add(spv::OpTypeVector, {int_, 4});
};

TEST_F(Mangling, NumbersAndTheirSigns) {
    EXPECT_EQ(name("sin").add(float_).text(), "_Z3sinf");
    EXPECT_EQ(name("abs").add(int_, Sign::is_unsigned).text(), "_Z3absj");
    EXPECT_EQ(name("upsample").add(char_).add(char_, Sign::is_unsigned).text(), "_Z8upsamplech");
    EXPECT_EQ(name("add_sat").add(long_).add(long_, Sign::is_unsigned).text(), "_Z7add_satlm");
    EXPECT_EQ(name("get_work_dim").text(), "_Z12get_work_dimv");
    EXPECT_EQ(name("get_global_id").add_code("j").text(), "_Z13get_global_idj");
}

TEST_F(Mangling, RepeatedTypesAreReferences) {
    EXPECT_EQ(name("fma").add(float4).add(float4).add(float4).text(), "_Z3fmaDv4_fS_S_");
    EXPECT_EQ(name("shuffle").add(int4).add(int4, Sign::is_unsigned).text(), "_Z7shuffleDv4_iDv4_j");
    EXPECT_EQ(name("shuffle2").add(int4).add(int4).add(int4, Sign::is_unsigned).text(), "_Z8shuffle2Dv4_iS_Dv4_j");
    EXPECT_EQ(name("work_group_barrier").add_code("j").add_named("memory_scope").text(),
              "_Z18work_group_barrierj12memory_scope");
}

TEST_F(Mangling, PointersHaveTheirAddressSpace) {
    EXPECT_EQ(name("frexp").add(float_).add(pointer(spv::StorageClassFunction, int_)).text(), "_Z5frexpfPi");
    EXPECT_EQ(name("frexp").add(float_).add(pointer(spv::StorageClassGeneric, int_)).text(), "_Z5frexpfPU3AS4i");
    EXPECT_EQ(name("fract").add(float4).add(pointer(spv::StorageClassCrossWorkgroup, float4)).text(),
              "_Z5fractDv4_fPU3AS1S_");
    EXPECT_EQ(name("vload4").add_code("m").add_const_pointer(pointer(spv::StorageClassGeneric, float_)).text(),
              "_Z6vload4mPU3AS4Kf");
    EXPECT_EQ(
        name("vload_half").add_code("m").add_const_pointer(pointer(spv::StorageClassCrossWorkgroup, half_)).text(),
        "_Z10vload_halfmPU3AS1KDh");
    EXPECT_EQ(name("async_work_group_copy")
                  .add(pointer(spv::StorageClassWorkgroup, float_))
                  .add_const_pointer(pointer(spv::StorageClassCrossWorkgroup, float_))
                  .add_code("m")
                  .add_named("ocl_event")
                  .text(),
              "_Z21async_work_group_copyPU3AS3fPU3AS1Kfm9ocl_event");
    EXPECT_EQ(name("async_work_group_copy")
                  .add(pointer(spv::StorageClassWorkgroup, float4))
                  .add_const_pointer(pointer(spv::StorageClassCrossWorkgroup, float4))
                  .add_code("m")
                  .add_named("ocl_event")
                  .text(),
              "_Z21async_work_group_copyPU3AS3Dv4_fPU3AS1KS_m9ocl_event");
}

} // namespace
} // namespace polder::compiler::spirv
