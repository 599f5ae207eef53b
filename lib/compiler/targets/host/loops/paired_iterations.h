// Two iterations of a loop at once, where one iteration is a long chain of dependent vector operations.
//
// A program that tries passwords has a loop whose iterations are independent: each computes a hash, compares it to the one it looks for, and has more to do only
// if they are equal. Each step of MD5 waits for the one before, so half of the processor's units have nothing to do. The next iteration is too far away in the
// code for the processor to begin it. Here the steps of both iterations stand beside each other.
//
// Runs after all passes that know the form of loops.
#pragma once

namespace llvm {
class Function;
class TargetTransformInfo;
}  // namespace llvm

namespace polder::compiler {

// A loop is taken whose iteration is one long block, if what happens most often after it is to go on with the next one. No part of an iteration that is computed
// early has effects, or loads from where the program does not; the old loop remains, and executes the rest from an iteration that does something else. Returns how
// many loops have been changed.
unsigned pair_iterations(llvm::Function& function, const llvm::TargetTransformInfo& target);

}  // namespace polder::compiler
