// polder-memory: replays and shows traces of the memory layer (POLDER_TRACE). See doc/trace.md.
#include "exports.h"
#include "trace/optimum.h"
#include "trace/replay.h"

#include <base/options.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace polder::tool {
namespace {

constexpr const char* usage = "polder-memory replay FILE [--policy=SETTINGS]... [--memory=BYTES] [--fixed]\n"
                              "polder-memory view FILE [--format=html|perfetto|pytorch] [--output=FILE]\n"
                              "\n"
                              "FILE was written with POLDER_TRACE. SETTINGS are those of POLDER_ALLOC_CONF, or a "
                              "policy's name: bufalloc, caching,\n"
                              "bucket. Without --policy, replay compares all of them.\n";

struct Arguments {
    std::string command;
    std::string file;
    std::vector<std::string> policies;
    trace::ReplayOptions replay;
    std::string format = "html";
    std::string output;
};

int refuse(const std::string& text) {
    std::fprintf(stderr, "polder-memory: %s\n%s", text.c_str(), usage);
    return 2;
}

// Parses the command line. Returns an error message, or an empty text.
std::string parse(int count, char** words, Arguments& arguments) {
    for (int i = 1; i < count; ++i) {
        const std::string_view word = words[i];
        const auto value = [&](std::string_view name) {
            return word.starts_with(name) ? std::string(word.substr(name.size())) : std::string();
        };
        if (const std::string policy = value("--policy="); !policy.empty()) {
            arguments.policies.push_back(policy);
        } else if (const std::string memory = value("--memory="); !memory.empty()) {
            const auto bytes = options::parse_bytes(memory);
            if (!bytes || *bytes == 0)
                return "--memory=" + memory + " is no number of bytes";
            arguments.replay.memory = ByteCount{*bytes};
        } else if (word == "--fixed") {
            arguments.replay.growable = false;
        } else if (const std::string format = value("--format="); !format.empty()) {
            arguments.format = format;
        } else if (const std::string output = value("--output="); !output.empty()) {
            arguments.output = output;
        } else if (word.starts_with("-")) {
            return "unknown option " + std::string(word);
        } else if (arguments.command.empty()) {
            arguments.command = word;
        } else if (arguments.file.empty()) {
            arguments.file = word;
        } else {
            return "one file at a time";
        }
    }
    if (arguments.command.empty() || arguments.file.empty())
        return "a command and a file are needed";
    return {};
}

std::string mebibytes(uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
    return text;
}

void print_row(const char* policy, const trace::ReplayOfSpace& row) {
    std::printf("%-5u %-34s %12s %12s %12s %6.1f%% ", row.space, policy, mebibytes(row.peak_asked_bytes).c_str(),
                mebibytes(row.peak_allocated_bytes).c_str(), mebibytes(row.peak_reserved_bytes).c_str(),
                100 * row.utilisation());
    if (row.ns != 0)
        std::printf("%7.1f", row.ns_per_operation());
    else
        std::printf("%7s", "");
    std::printf(" %8" PRIu64 " %6" PRIu64 " %6" PRIu64 " %8" PRIu64, row.leases, row.out_of_memory, row.waits,
                row.reserves);
    if (row.decisions != 0)
        std::printf("  %016" PRIx64, row.decisions);
    std::printf("\n");
}

// Prints the bytes that crossed the links, and the least number that would have been enough.
void print_moves(const std::vector<trace::MovesOfSpace>& moves) {
    if (moves.empty())
        return;
    std::printf("\n%-5s %12s %12s %8s %14s %14s %6s\n", "space", "memory", "buffers", "launches", "moved", "optimum",
                "ratio");
    for (const trace::MovesOfSpace& row : moves)
        std::printf("%-5u %12s %12s %8" PRIu64 " %14s %14s %6.2f\n", row.space, mebibytes(row.memory_bytes).c_str(),
                    mebibytes(row.used_bytes).c_str(), row.launches, mebibytes(row.moved_bytes).c_str(),
                    mebibytes(row.optimum_bytes).c_str(), row.ratio());
}

int replay(const trace::TraceFile& file, Arguments& arguments) {
    if (arguments.policies.empty())
        arguments.policies = {"bufalloc", "caching", "caching,expandable_segments:True", "bucket"};
    std::printf("%-5s %-34s %12s %12s %12s %7s %7s %8s %6s %6s %8s  %s\n", "space", "policy", "asked", "allocated",
                "reserved", "used", "ns", "leases", "OOM", "waits", "reserves", "decisions");
    for (const trace::ReplayOfSpace& row : trace::recorded(file))
        print_row("(as recorded)", row);
    for (const std::string& name : arguments.policies) {
        // "caching,expandable_segments:True" begins with the name of a backend.
        const bool is_short = std::string_view(name).substr(0, name.find(',')).find_first_of(":=") == std::string::npos;
        const auto parsed = memory::parse_policy(is_short ? "backend:" + name : name, "--policy");
        if (!parsed.warning.empty())
            return refuse(parsed.warning);
        arguments.replay.policy = parsed.policy;
        for (const trace::ReplayOfSpace& row : trace::replay(file, arguments.replay))
            print_row(name.c_str(), row);
    }
    print_moves(trace::compare_with_optimum(file, arguments.replay.memory));
    return 0;
}

int view(const trace::TraceFile& file, const Arguments& arguments) {
    void (*write)(const trace::TraceFile&, std::ostream&) = arguments.format == "html"       ? write_page
                                                            : arguments.format == "perfetto" ? write_perfetto
                                                            : arguments.format == "pytorch"  ? write_pytorch
                                                                                             : nullptr;
    if (!write)
        return refuse("the formats are html, perfetto and pytorch");
    if (arguments.output.empty()) {
        write(file, std::cout);
        return std::cout.flush() ? 0 : 1;
    }
    std::ofstream out(arguments.output, std::ios::binary);
    write(file, out);
    if (!out.flush()) {
        std::fprintf(stderr, "polder-memory: %s cannot be written\n", arguments.output.c_str());
        return 1;
    }
    return 0;
}

int run(int count, char** words) {
    if (count == 2 && (std::string_view(words[1]) == "--help" || std::string_view(words[1]) == "-h")) {
        std::printf("%s", usage);
        return 0;
    }
    Arguments arguments;
    if (const std::string problem = parse(count, words, arguments); !problem.empty())
        return refuse(problem);
    if (arguments.command != "replay" && arguments.command != "view")
        return refuse("unknown command " + arguments.command);
    const auto file = trace::read_trace(arguments.file);
    if (!file) {
        std::fprintf(stderr, "polder-memory: %s\n", std::string(file.error().detail()).c_str());
        return 1;
    }
    return arguments.command == "replay" ? replay(*file, arguments) : view(*file, arguments);
}

}  // namespace
}  // namespace polder::tool

int main(int count, char** words) { return polder::tool::run(count, words); }
