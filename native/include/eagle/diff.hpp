// The reverse of a graph as a list of steps: which vjps to run, which adjoints to add up and in what order,
// which planes to copy before they are overwritten.
//
// A plane has versions: version 0 is its value before the launch, and each node that writes it makes the
// next one. An adjoint belongs to a version. It is the sum of its seed, if it has one, and then of what the
// version's readers contribute, in the order in which the nodes were added (within a node, in the order of
// the arguments). A version that gets neither has no adjoint: a structural zero, which is not computed.

#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "graph.hpp"
#include "sum.hpp"

namespace eagle::diff {

using eagle::orderedSum;
using eagle::treeOfBlocks;

inline constexpr int kNone = -1;

// The adjoint of `plane` as `node` wrote it is given by the user.
struct Seed {
    int node;
    int plane;
};

// `plane` is copied just before `before_node` runs: that node overwrites a value which a vjp needs.
struct Copy {
    int plane;
    int before_node;
};

// Buffers are numbered from 0 and written once each: a seed by the user, the others by one step.

// Runs the vjp of `node`.
struct Vjp {
    int node;
    std::vector<int>
        cotangents;            // per written access: the buffer of its adjoint, kNone for a structural zero
    std::vector<int> outputs;  // per differentiated access: the buffer to write
};

// target = ((sources[0] + sources[1]) + sources[2]) ...
struct Join {
    int target;
    std::vector<int> sources;
};

// The adjoint of a plane that `node` wrote goes on to the version before: target = source where the node
// was skipped, and 0 where it ran.
struct Pass {
    int node;
    int plane;
    int target;
    int source;
};

using Step = std::variant<Vjp, Join, Pass>;

// One term of a gradient: what the vjp of `node` computes for `argument` (kNone: passed through).
struct Share {
    int node;
    int argument;
    int buffer;
};

// The adjoint of version 0 of a plane; kNone for a structural zero. `shares` are its terms in order.
struct Gradient {
    int plane;
    int buffer;
    std::vector<Share> shares;
};

struct Transposed {
    std::vector<Copy> copies;  // in the order in which they are taken; independent of the seeds
    std::vector<std::vector<int>>
        sources;  // per node and needed access: a copy, or kNone: it is in the plane still
    std::vector<Step> steps;
    std::vector<int> buffer_planes;  // per buffer: the plane whose shape it has
    std::vector<int> seed_buffers;   // per seed
    std::vector<Gradient>
        gradients;  // by plane: those that a node differentiates, or passes on, at version 0
};

namespace detail {

struct Version {
    int plane;
    int writer = kNone;        // the node that made it, kNone for version 0
    int overwriter = kNone;    // the node that makes the next version
    bool is_needed = false;    // by some vjp
    bool has_readers = false;  // that differentiate it or pass it on
};

// The versions that one node meets, list by list as in the node.
struct Meeting {
    std::vector<int> needs;
    std::vector<int> differentiates;
    std::vector<int> overwrites;
    std::vector<int> writes;
};

struct History {
    std::vector<Version> versions;  // the first ones are version 0 of each plane
    std::vector<Meeting> meetings;  // per node

    explicit History(const Description& description) {
        description.check();
        std::vector<int> current;
        for (int plane = 0; plane < description.planes; ++plane) current.push_back(add(plane, kNone));
        for (std::size_t n = 0; n < description.nodes.size(); ++n) {
            const Node& node = description.nodes[n];
            Meeting meeting;
            for (const Access& access : node.needs) {
                meeting.needs.push_back(current[index(access.plane)]);
                versions[index(meeting.needs.back())].is_needed = true;
            }
            for (const Access& access : node.differentiates) {
                meeting.differentiates.push_back(current[index(access.plane)]);
                versions[index(meeting.differentiates.back())].has_readers = true;
            }
            for (const Access& access : node.writes) {
                int& latest = current[index(access.plane)];
                meeting.overwrites.push_back(latest);
                versions[index(latest)].overwriter = static_cast<int>(n);
                versions[index(latest)].has_readers |= node.passes_through;
                latest = add(access.plane, static_cast<int>(n));
                meeting.writes.push_back(latest);
            }
            meetings.push_back(std::move(meeting));
        }
    }

    static std::size_t index(int id) { return static_cast<std::size_t>(id); }

private:
    int add(int plane, int writer) {
        versions.push_back({plane, writer});
        return static_cast<int>(versions.size()) - 1;
    }
};

// Fills `copies` and `sources`.
inline void findCopies(const History& history, Transposed& result) {
    std::vector<int> copy_of(history.versions.size(), kNone);
    for (std::size_t n = 0; n < history.meetings.size(); ++n)
        for (int version : history.meetings[n].overwrites)
            if (history.versions[History::index(version)].is_needed) {
                copy_of[History::index(version)] = static_cast<int>(result.copies.size());
                result.copies.push_back(
                    {history.versions[History::index(version)].plane, static_cast<int>(n)});
            }
    for (const Meeting& meeting : history.meetings) {
        result.sources.emplace_back();
        for (int version : meeting.needs) result.sources.back().push_back(copy_of[History::index(version)]);
    }
}

// Visits the nodes last to first and appends the steps.
class Sweep {
public:
    Sweep(const Description& description, const History& history, Transposed& result)
        : description_(description), history_(history), result_(result), terms_(history.versions.size()) {}

    void seed(const Seed& seed) {
        const int version = versionOf(seed);
        std::vector<Share>& terms = terms_[History::index(version)];
        if (!terms.empty()) failSeed(seed, "is seeded twice");
        result_.seed_buffers.push_back(newBuffer(seed.plane));
        terms.push_back({kNone, kNone, result_.seed_buffers.back()});
    }

    void run() {
        for (std::size_t n = description_.nodes.size(); n-- > 0;) visit(n);
        for (int plane = 0; plane < description_.planes; ++plane) {
            if (!history_.versions[History::index(plane)].has_readers) continue;
            const int buffer = adjoint(plane);
            result_.gradients.push_back({plane, buffer, terms_[History::index(plane)]});
        }
    }

private:
    void visit(std::size_t n) {
        const Node& node = description_.nodes[n];
        const Meeting& meeting = history_.meetings[n];
        const int id = static_cast<int>(n);
        std::vector<int> cotangents;
        for (int version : meeting.writes) cotangents.push_back(adjoint(version));
        if (std::all_of(cotangents.begin(), cotangents.end(), [](int buffer) { return buffer == kNone; }))
            return;
        if (!node.differentiates.empty()) {
            std::vector<int> outputs;
            for (std::size_t k = 0; k < node.differentiates.size(); ++k) {
                outputs.push_back(newBuffer(node.differentiates[k].plane));
                const Share term{id, node.differentiates[k].argument, outputs.back()};
                terms_[History::index(meeting.differentiates[k])].push_back(term);
            }
            result_.steps.push_back(Vjp{id, cotangents, outputs});
        }
        if (!node.passes_through) return;
        for (std::size_t k = 0; k < cotangents.size(); ++k) {
            if (cotangents[k] == kNone) continue;
            const int plane = node.writes[k].plane;
            const int target = newBuffer(plane);
            result_.steps.push_back(Pass{id, plane, target, cotangents[k]});
            terms_[History::index(meeting.overwrites[k])].push_back({id, kNone, target});
        }
    }

    // The buffer of a version's adjoint, joined now if it has several terms. All its readers were visited.
    int adjoint(int version) {
        std::vector<Share>& terms = terms_[History::index(version)];
        // Readers came last to first; a seed has node kNone and stays in front.
        std::stable_sort(terms.begin(), terms.end(),
                         [](const Share& a, const Share& b) { return a.node < b.node; });
        if (terms.empty()) return kNone;
        if (terms.size() == 1) return terms[0].buffer;
        Join join{newBuffer(history_.versions[History::index(version)].plane), {}};
        for (const Share& term : terms) join.sources.push_back(term.buffer);
        result_.steps.push_back(join);
        return join.target;
    }

    int versionOf(const Seed& seed) const {
        if (seed.node < 0 || History::index(seed.node) >= description_.nodes.size())
            throw std::invalid_argument("a seed for node " + std::to_string(seed.node) + " of " +
                                        std::to_string(description_.nodes.size()));
        const std::vector<int>& writes = history_.meetings[History::index(seed.node)].writes;
        for (int version : writes)
            if (history_.versions[History::index(version)].plane == seed.plane) return version;
        failSeed(seed, "is seeded, but this node does not write it");
    }

    [[noreturn]] void failSeed(const Seed& seed, const char* why) const {
        throw std::invalid_argument("node '" + description_.nodes[History::index(seed.node)].name +
                                    "': plane " + std::to_string(seed.plane) + ' ' + why);
    }

    int newBuffer(int plane) {
        result_.buffer_planes.push_back(plane);
        return static_cast<int>(result_.buffer_planes.size()) - 1;
    }

    const Description& description_;
    const History& history_;
    Transposed& result_;
    std::vector<std::vector<Share>> terms_;  // per version
};

}  // namespace detail

// The copies that a recording launch takes, whatever is seeded later. They are `transpose(...).copies`.
inline std::vector<Copy> copies(const Description& description) {
    Transposed result;
    detail::findCopies(detail::History(description), result);
    return result.copies;
}

// The reverse of one launch. std::invalid_argument for a description that makes no sense, and for a seed of
// a plane which its node does not write or which is seeded already.
inline Transposed transpose(const Description& description, const std::vector<Seed>& seeds) {
    const detail::History history(description);
    Transposed result;
    detail::findCopies(history, result);
    detail::Sweep sweep(description, history, result);
    for (const Seed& seed : seeds) sweep.seed(seed);
    sweep.run();
    return result;
}

}  // namespace eagle::diff
