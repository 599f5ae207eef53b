// All elements have to be loads of one table, which differ in one index: an element of one vector of indices, or that element extended to the width of an
// address.
#include "vectors_of_table.h"

#include "lane_types.h"

#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::workgroup {
namespace {

using namespace llvm::PatternMatch;

constexpr unsigned elements_min = 4;

using ElementLoads = llvm::SmallVector<llvm::LoadInst*, 16>;

// The loads of all elements, in their order; nothing where there are other elements.
std::optional<ElementLoads> loads_of_elements(llvm::InsertElementInst& last) {
    const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(last.getType());
    if (type == nullptr || type->getNumElements() < elements_min || !llvm::isPowerOf2_32(type->getNumElements()) ||
        llvm::any_of(last.users(), llvm::IsaPred<llvm::InsertElementInst>))
        return std::nullopt;
    ElementLoads loads(type->getNumElements(), nullptr);
    size_t missing = loads.size();
    for (llvm::Value* at = &last; missing > 0;) {
        auto* const insertion = llvm::dyn_cast<llvm::InsertElementInst>(at);
        uint64_t place = 0;
        if (insertion == nullptr || !match(insertion->getOperand(2), m_ConstantInt(place)) || place >= loads.size() ||
            (insertion != &last && !insertion->hasOneUse()))
            return std::nullopt;
        auto* const load = llvm::dyn_cast<llvm::LoadInst>(insertion->getOperand(1));
        if (load == nullptr || !load->isSimple() || loads[place] != nullptr)
            return std::nullopt;
        loads[place] = load;
        --missing;
        at = insertion->getOperand(0);
    }
    return loads;
}

const llvm::GEPOperator* address_of(const llvm::LoadInst& load) {
    return llvm::dyn_cast<llvm::GEPOperator>(load.getPointerOperand());
}

// Whether both addresses have the same operands but that one.
bool differ_in_one(const llvm::GEPOperator& one, const llvm::GEPOperator& other, unsigned operand) {
    if (one.getSourceElementType() != other.getSourceElementType() || one.getNumOperands() != other.getNumOperands())
        return false;
    for (unsigned i = 0; i < one.getNumOperands(); ++i)
        if (i != operand && one.getOperand(i) != other.getOperand(i))
            return false;
    return true;
}

// Adds the place of the load's index, which is operand `operand` of its address. The first one says which vector has all indices, and how they are extended.
bool add_place(VectorOfTable& vector, llvm::Value* index) {
    auto* const cast = llvm::dyn_cast<llvm::CastInst>(index);
    auto* const extract = llvm::dyn_cast<llvm::ExtractElementInst>(cast ? cast->getOperand(0) : index);
    const auto* const type = extract ? llvm::dyn_cast<llvm::FixedVectorType>(extract->getVectorOperandType()) : nullptr;
    uint64_t place = 0;
    if (type == nullptr || !match(extract->getIndexOperand(), m_ConstantInt(place)) || place >= type->getNumElements())
        return false;
    if (vector.places.empty()) {
        vector.indices = extract->getVectorOperand();
        vector.extension = cast;
    }
    const auto* const extension = vector.extension;
    const bool is_same_cast = cast && extension && cast->getOpcode() == extension->getOpcode() &&
                              llvm::isa<llvm::IntegerType>(cast->getType());
    if (extract->getVectorOperand() != vector.indices || (!is_same_cast && (cast || extension)))
        return false;
    vector.places.push_back(static_cast<int>(place));
    return true;
}

}  // namespace

std::optional<VectorOfTable> vector_of_table(llvm::InsertElementInst& last,
                                             llvm::function_ref<const ConstantTable*(llvm::LoadInst&)> table_of) {
    const std::optional<ElementLoads> loads = loads_of_elements(last);
    const llvm::GEPOperator* const address = loads ? address_of(*loads->front()) : nullptr;
    if (address == nullptr)
        return std::nullopt;
    VectorOfTable vector{.table = table_of(*loads->front()), .element = loads->front()->getType()};
    if (vector.table == nullptr)
        return std::nullopt;
    const auto* const index = llvm::find(address->operands(), vector.table->index);
    const auto elements = static_cast<unsigned>(loads->size());
    const auto registers = static_cast<unsigned>(vector.table->entries.size()) / vector.table->register_entries;
    if (index == address->op_end() || vector.table->instructions(elements) + registers > 2 * elements)
        return std::nullopt;
    const unsigned operand = index->getOperandNo();
    for (const llvm::LoadInst* const load : *loads) {
        const llvm::GEPOperator* const other = address_of(*load);
        if (other == nullptr || load->getType() != vector.element || !differ_in_one(*address, *other, operand) ||
            !add_place(vector, other->getOperand(operand)))
            return std::nullopt;
    }
    return vector;
}

llvm::Value* look_up(llvm::IRBuilder<>& builder, const VectorOfTable& vector, llvm::Value& indices) {
    const unsigned of_one = elements_of_lane(*vector.indices->getType());
    const unsigned of_all = llvm::cast<llvm::FixedVectorType>(indices.getType())->getNumElements();
    llvm::SmallVector<int> places;
    for (unsigned first = 0; first < of_all; first += of_one)
        for (const int place : vector.places)
            places.push_back(static_cast<int>(first) + place);
    llvm::Value* const chosen = llvm::ShuffleVectorInst::isIdentityMask(places, static_cast<int>(of_all))
                                    ? &indices
                                    : builder.CreateShuffleVector(&indices, places);
    const auto* const extension = vector.extension;
    llvm::Value* const extended = extension
                                      ? builder.CreateCast(extension->getOpcode(), chosen,
                                                           chosen->getType()->getWithNewType(extension->getType()))
                                      : chosen;
    return look_up(builder, *vector.table, *extended, *vector.element);
}

}  // namespace polder::compiler::workgroup
