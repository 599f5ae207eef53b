// The figures are those of a Zen 4 and of Intel's server processors, rounded; the latencies differ little. Two instructions start in each cycle. Divisions take
// a half and a quarter of the time in registers of 256 and 128 bits.
#include "lane_times.h"

#include "lane_cost.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/work_items/local_atomics.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <algorithm>
#include <llvm/IR/IntrinsicInst.h>

namespace polder::compiler::workgroup {

namespace {

constexpr double instruction_work = 0.5;  // two start in each cycle
constexpr double floating_latency = 4, across_lanes_latency = 3;

bool is_bit(const llvm::Type& type) { return type.isIntOrIntVectorTy(1); }

// Whether the value is only an index of addresses, which scalars or gathers compute.
bool is_only_an_index(const llvm::Instruction& instruction) {
    return llvm::all_of(instruction.users(),
                        [](const llvm::User* user) { return llvm::isa<llvm::GetElementPtrInst>(user); });
}

}  // namespace

std::optional<LaneTime> LaneTimes::of(llvm::Instruction& instruction) {
    constexpr double conversion_work = 0.75, conversion_latency = 5, product_work = 0.75, product_latency = 6;
    constexpr double long_product_work = 1.5, long_product_latency = 10, comparison_latency = 4;
    if (llvm::getLoadStorePointerOperand(&instruction) != nullptr)
        return of_access(instruction);
    if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction))
        return of_call(*call);
    const double count = registers(*instruction.getType());
    const llvm::Type& type = *instruction.getType()->getScalarType();
    const LaneTime simple{instruction_work * count, 1};
    switch (instruction.getOpcode()) {
    case llvm::Instruction::FDiv: return LaneTime{count * for_division(type), type.isDoubleTy() ? 18.0 : 14.0};
    case llvm::Instruction::UDiv:
    case llvm::Instruction::SDiv:
    case llvm::Instruction::URem:
    case llvm::Instruction::SRem: return of_whole_numbers(instruction);
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul: return LaneTime{instruction_work * count, floating_latency};
    case llvm::Instruction::Mul: {
        constexpr unsigned word_bits = 32;
        return type.getScalarSizeInBits() > word_bits ? LaneTime{long_product_work * count, long_product_latency}
                                                      : LaneTime{product_work * count, product_latency};
    }
    case llvm::Instruction::SIToFP:
    case llvm::Instruction::UIToFP:
    case llvm::Instruction::FPToSI:
    case llvm::Instruction::FPToUI:
    case llvm::Instruction::FPExt:
    case llvm::Instruction::FPTrunc: return LaneTime{conversion_work * count, conversion_latency};
    case llvm::Instruction::SExt:
    case llvm::Instruction::ZExt:
    case llvm::Instruction::Trunc:
        if (is_only_an_index(instruction))
            return LaneTime{};
        return is_bit(*instruction.getOperand(0)->getType()) || is_bit(type) ? simple
                                                                             : LaneTime{count, across_lanes_latency};
    case llvm::Instruction::ICmp:
    case llvm::Instruction::FCmp:
        return LaneTime{instruction_work * registers(*instruction.getOperand(0)->getType()), comparison_latency};
    case llvm::Instruction::BitCast:
    case llvm::Instruction::Freeze:
    case llvm::Instruction::GetElementPtr: return LaneTime{};
    default: return simple;
    }
}

// Whole numbers are divided as floating-point numbers (lane_division.h).
std::optional<LaneTime> LaneTimes::of_whole_numbers(const llvm::Instruction& division) const {
    constexpr double conversions_work = 4, latency = 36;
    constexpr unsigned registers_of_words = 2;
    if (!is_divided_in_lanes(*division.getType()))
        return std::nullopt;
    const double count = registers(*division.getType());
    const llvm::Type& real = *llvm::Type::getDoubleTy(division.getContext());
    return LaneTime{count * (registers_of_words * for_division(real) + conversions_work), latency};
}

std::optional<LaneTime> LaneTimes::of_call(const llvm::CallBase& call) const {
    constexpr double rounding_latency = 8;
    const bool is_rare = call.getCalledFunction() && call.getCalledFunction()->hasFnAttribute(llvm::Attribute::Cold);
    if (is_rare || is_any_work_item(call))
        return LaneTime{.work = 1};  // a branch
    if (llvm::isa<llvm::AssumeInst>(call) || call.isLifetimeStartOrEnd())
        return LaneTime{};
    if (!is_vector_instruction(call))
        return std::nullopt;
    const double count = registers(*call.getType());
    const llvm::Type& type = *call.getType()->getScalarType();
    switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::sqrt: return LaneTime{count * for_root(type), type.isDoubleTy() ? 24.0 : 17.0};
    case llvm::Intrinsic::fabs:
    case llvm::Intrinsic::copysign: return LaneTime{instruction_work * count, 1};
    case llvm::Intrinsic::fma:
    case llvm::Intrinsic::fmuladd: return LaneTime{instruction_work * count, floating_latency};
    case llvm::Intrinsic::floor:
    case llvm::Intrinsic::ceil:
    case llvm::Intrinsic::trunc:
    case llvm::Intrinsic::rint:
    case llvm::Intrinsic::round:
    case llvm::Intrinsic::roundeven: return LaneTime{count, rounding_latency};
    default:
        return type.isFloatingPointTy() ? LaneTime{count, floating_latency} : LaneTime{instruction_work * count, 1};
    }
}

std::optional<LaneTime> LaneTimes::of_access(llvm::Instruction& instruction) {
    constexpr double load_latency = 7, step_work = 2, question = 1.5, table_latency = 5;
    constexpr double lane_work = 0.85, gather_latency = 14;
    if (instruction.isAtomic() || instruction.isVolatile() || instruction.hasMetadata(local_atomic_mark))
        return std::nullopt;
    if (shapes_.of(llvm::getLoadStorePointerOperand(&instruction)).is_uniform())
        return LaneTime{instruction_work, load_latency};
    if (const ConstantTable* const table = accesses_.table_of(instruction))
        return LaneTime{instruction_work * table->instructions(lanes_), table_latency};
    if (const std::optional<LaneAccess> access = accesses_.of(instruction)) {
        const double work = access->is_consecutive() ? instruction_work : step_work;
        return LaneTime{registers(*llvm::getLoadStoreType(&instruction)) * work + (access->is_certain ? 0 : question),
                        load_latency};
    }
    return LaneTime{lane_work * lanes_, lane_work * lanes_ + gather_latency};
}

// Those that a value of all lanes fills. On processors with registers of 512 bits, one that is at most half full counts half.
double LaneTimes::registers(const llvm::Type& type) const {
    constexpr unsigned byte = 8, word = 32;
    if (type.isVoidTy() || is_bit(type))
        return 1;
    const unsigned element =
        type.isPtrOrPtrVectorTy() ? 2 * word : std::max(static_cast<unsigned>(type.getScalarSizeInBits()), byte);
    const double filled =
        static_cast<double>(element) * elements_of_lane(type) * lanes_ / (word * prices_.register_words);
    return std::max(filled, prices_.register_words == words_of_512_bits ? 1.0 / 2 : 1.0);
}

double LaneTimes::for_division(const llvm::Type& type) const {
    constexpr double wide_double = 16, other = 10;
    const double of_512_bits = type.isDoubleTy() && prices_.loads == Loads::scarce ? wide_double : other;
    return of_512_bits * prices_.register_words / words_of_512_bits;
}

double LaneTimes::for_root(const llvm::Type& type) const {
    constexpr double of_doubles = 18, of_floats = 11;
    return (type.isDoubleTy() ? of_doubles : of_floats) * prices_.register_words / words_of_512_bits;
}

}  // namespace polder::compiler::workgroup
