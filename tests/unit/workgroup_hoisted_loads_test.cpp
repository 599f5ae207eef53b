// load_in_loops, on IR as LLVM's passes leave it: elements of a tile that are loaded and repeated in all lanes before a loop.

#include "analyses.h"
#include "parsed_ir.h"
#include "targets/host/loops/hoisted_loads.h"

#include <gtest/gtest.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <string>

namespace polder::compiler::workgroup {
namespace {

// The loads that moved, with `tile` before the parameter of that name, and `body` behind the additions in the loop. The elements are
// added in the block `loop`, those with an odd number in `where_odd`. The loop has the properties `properties`.
struct Tile {
    unsigned numbers = 12;
    std::string attributes = "noalias readonly";
    std::string body;
    std::string where_odd = "loop";
    std::string properties = "!\"polder.items\"";
};

unsigned moved(const Tile& tile) {
    std::string loads, sums[2];
    std::string last = "%start";
    for (unsigned odd : {0U, 1U})
        for (unsigned i = odd; i < tile.numbers; i += 2) {
            const std::string n = std::to_string(i);
            loads += "  %a" + n + " = getelementptr float, ptr %tile, i64 " + n + "\n  %l" + n +
                     " = load float, ptr %a" + n + "\n  %i" + n + " = insertelement <16 x float> poison, float %l" + n +
                     ", i64 0\n  %v" + n + " = shufflevector <16 x float> %i" + n +
                     ", <16 x float> poison, <16 x i32> zeroinitializer\n";
            sums[odd] += "  %s" + n + " = fadd <16 x float> " + last + ", %v" + n + "\n";
            last = "%s" + n;
        }
    const std::string text = "define void @k(ptr noalias %out, ptr " + tile.attributes +
                             " %tile, <16 x float> %start, i64 %n) {\n" + loads +
                             "  br label %loop\nloop:\n  %y = phi i64 [ 0, %0 ], [ %next, %second ]\n" + sums[0] +
                             (tile.where_odd == "loop" ? sums[1] : "") + "  br label %second\nsecond:\n" +
                             (tile.where_odd == "second" ? sums[1] : "") +
                             "  %row = getelementptr <16 x float>, ptr %out, i64 %y\n  store <16 x float> " + last +
                             ", ptr %row\n" + tile.body +
                             "  %next = add nuw nsw i64 %y, 1\n  %done = icmp eq i64 %next, %n\n"
                             "  br i1 %done, label %end, label %loop, !llvm.loop !0\nend:\n  ret void\n}\n"
                             "declare void @unknown()\n!0 = distinct !{!0, !1}\n!1 = !{" +
                             tile.properties + "}\n";
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = compiler::test::parsed(text, context);
    if (!module)
        return 0;
    Analyses analyses;
    llvm::PassBuilder builder;
    analyses.register_all(builder);
    llvm::Function& function = *module->getFunction("k");
    const unsigned result = load_in_loops(function, analyses.functions);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs())) << text;
    unsigned before = 0;
    for (const llvm::Instruction& instruction : function.getEntryBlock())
        before += llvm::isa<llvm::LoadInst>(instruction) ? 1 : 0;
    EXPECT_EQ(before, tile.numbers - result);
    return result;
}

TEST(HoistedLoads, ManyElements_AreLoadedInTheLoop) { EXPECT_EQ(moved({}), 12); }

TEST(HoistedLoads, FewElements_StayInRegisters) { EXPECT_EQ(moved({.numbers = 4}), 0); }

// A call of another function may change it, too.
TEST(HoistedLoads, ElementsThatTheLoopMayChange_Stay) {
    EXPECT_EQ(moved({.attributes = "", .body = "  call void @unknown()\n"}), 0);
    EXPECT_EQ(moved({.attributes = "", .body = "  store float 1.0, ptr %tile\n"}), 11);
    EXPECT_EQ(moved({.attributes = "", .body = "  fence seq_cst\n"}), 0);
}

// A work-item would read a place more than once, and another group may write there in between.
TEST(HoistedLoads, ElementsUsedInSeveralBlocks_Stay) {
    EXPECT_EQ(moved({.body = "  %again = fadd <16 x float> %v2, %v3\n  store <16 x float> %again, ptr %row\n"}), 10);
    EXPECT_EQ(moved({.numbers = 24, .where_odd = "second"}), 24);
}

TEST(HoistedLoads, ALoopOfTheKernel_KeepsItsValuesBeforeIt) { EXPECT_EQ(moved({.properties = "!\"other\""}), 0); }

}  // namespace
}  // namespace polder::compiler::workgroup
