// What a graph does to its planes, in plain numbers: enough to reverse it.

#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace eagle {

// One argument of a node and the plane that it is bound to. Two arguments may read the same plane.
struct Access {
    int argument;
    int plane;

    friend bool operator==(const Access& a, const Access& b) {
        return a.argument == b.argument && a.plane == b.plane;
    }
};

// One launch. It reads its planes as they were and writes them at its end, so a plane may be in both lists.
struct Node {
    std::string name;
    std::vector<Access> reads;
    std::vector<Access> writes;          // each plane at most once
    std::vector<Access> needs;           // the reads whose values the node's vjp reads as well
    std::vector<Access> differentiates;  // the reads whose adjoints the vjp computes
    bool passes_through = false;         // the node may be skipped, and its writes then keep their old values
};

// The nodes in the order in which they run, over planes numbered from 0.
struct Description {
    int planes = 0;
    std::vector<Node> nodes;

    // std::invalid_argument, naming the node, for accesses that make no sense.
    void check() const {
        for (const Node& node : nodes) {
            for (const auto* list : {&node.reads, &node.writes, &node.needs, &node.differentiates})
                for (const Access& access : *list)
                    if (access.plane < 0 || access.plane >= planes)
                        fail(node, "argument", access.argument,
                             " is bound to plane " + std::to_string(access.plane) + " of " +
                                 std::to_string(planes));
            for (const auto* list : {&node.needs, &node.differentiates})
                for (const Access& access : *list)
                    if (std::find(node.reads.begin(), node.reads.end(), access) == node.reads.end())
                        fail(node, "argument", access.argument,
                             " is needed or differentiated but not among the reads");
            for (std::size_t k = 0; k < node.writes.size(); ++k)
                for (std::size_t j = 0; j < k; ++j)
                    if (node.writes[j].plane == node.writes[k].plane)
                        fail(node, "plane", node.writes[k].plane, " is written by two arguments");
        }
    }

private:
    [[noreturn]] static void fail(const Node& node, const char* what, int which, const std::string& why) {
        throw std::invalid_argument("node '" + node.name + "': " + what + ' ' + std::to_string(which) + why);
    }
};

}  // namespace eagle
