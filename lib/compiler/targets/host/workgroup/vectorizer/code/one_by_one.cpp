#include "one_by_one.h"

namespace polder::compiler::workgroup {

llvm::Value* load_one_by_one(llvm::IRBuilder<>& builder, llvm::Type& type, llvm::ArrayRef<llvm::Value*> addresses,
                             llvm::Align align) {
    auto* const all = llvm::FixedVectorType::get(&type, static_cast<unsigned>(addresses.size()));
    llvm::Value* result = llvm::PoisonValue::get(all);
    for (const auto [lane, address] : llvm::enumerate(addresses))
        result = builder.CreateInsertElement(result, builder.CreateAlignedLoad(&type, address, align), lane);
    return result;
}

void store_one_by_one(llvm::IRBuilder<>& builder, llvm::Value& values, llvm::ArrayRef<llvm::Value*> addresses,
                      llvm::Align align) {
    for (const auto [lane, address] : llvm::enumerate(addresses))
        builder.CreateAlignedStore(builder.CreateExtractElement(&values, lane), address, align);
}

llvm::SmallVector<llvm::Value*, 16> each_of(llvm::IRBuilder<>& builder, llvm::Value& addresses) {
    llvm::SmallVector<llvm::Value*, 16> all;
    for (unsigned lane = 0; lane < llvm::cast<llvm::FixedVectorType>(addresses.getType())->getNumElements(); ++lane)
        all.push_back(builder.CreateExtractElement(&addresses, lane));
    return all;
}

}  // namespace polder::compiler::workgroup
