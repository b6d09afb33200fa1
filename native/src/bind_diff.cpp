#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "eagle/diff.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using eagle::Access;
using eagle::Description;
using eagle::Node;
using namespace eagle::diff;
using Pairs = std::vector<std::pair<int, int>>;

std::vector<Access> accesses(const Pairs& pairs) {
    std::vector<Access> result;
    for (const auto& [argument, plane] : pairs) result.push_back({argument, plane});
    return result;
}

Pairs pairs(const std::vector<Access>& accesses) {
    Pairs result;
    for (const Access& access : accesses) result.emplace_back(access.argument, access.plane);
    return result;
}

std::vector<Seed> seedsOf(const Pairs& pairs) {
    std::vector<Seed> result;
    for (const auto& [node, plane] : pairs) result.push_back({node, plane});
    return result;
}

std::string text(int number) { return std::to_string(number); }

std::string text(const std::vector<int>& numbers) {
    std::ostringstream out;
    for (std::size_t k = 0; k < numbers.size(); ++k) out << (k > 0 ? ", " : "[") << numbers[k];
    out << (numbers.empty() ? "[]" : "]");
    return out.str();
}

void bindDescription(nb::module_& module) {
    nb::class_<Node>(module, "Node", "One launch of a graph; accesses are (argument, plane) pairs.")
        .def(
            "__init__",
            [](Node* self, std::string name, const Pairs& reads, const Pairs& writes, const Pairs& needs,
               const Pairs& differentiates, bool passes_through) {
                new (self) Node{std::move(name), accesses(reads),          accesses(writes),
                                accesses(needs), accesses(differentiates), passes_through};
            },
            "name"_a, nb::kw_only(), "reads"_a, "writes"_a, "needs"_a, "differentiates"_a,
            "passes_through"_a = false)
        .def_ro("name", &Node::name)
        .def_prop_ro("reads", [](const Node& n) { return pairs(n.reads); })
        .def_prop_ro("writes", [](const Node& n) { return pairs(n.writes); })
        .def_prop_ro("needs", [](const Node& n) { return pairs(n.needs); })
        .def_prop_ro("differentiates", [](const Node& n) { return pairs(n.differentiates); })
        .def_ro("passes_through", &Node::passes_through);

    nb::class_<Description>(module, "Description", "The nodes of a graph in the order in which they run.")
        .def(
            "__init__",
            [](Description* self, int planes, std::vector<Node> nodes) {
                Description description{planes, std::move(nodes)};
                description.check();
                new (self) Description(std::move(description));
            },
            "planes"_a, "nodes"_a, "Raises ValueError, naming the node, for accesses that make no sense.")
        .def_ro("planes", &Description::planes)
        .def_ro("nodes", &Description::nodes);
}

void bindSteps(nb::module_& module) {
    nb::class_<Copy>(module, "Copy", "`plane` is copied just before node `before_node` overwrites it.")
        .def_ro("plane", &Copy::plane)
        .def_ro("before_node", &Copy::before_node)
        .def("__repr__", [](const Copy& c) {
            return "Copy(plane=" + text(c.plane) + ", before_node=" + text(c.before_node) + ")";
        });
    nb::class_<Vjp>(module, "Vjp",
                    "Run the vjp of `node`: adjoints per written access to outputs per differentiated one.")
        .def_ro("node", &Vjp::node)
        .def_ro("cotangents", &Vjp::cotangents, "Buffers; -1 for a structural zero.")
        .def_ro("outputs", &Vjp::outputs, "Buffers to write.")
        .def("__repr__", [](const Vjp& v) {
            return "Vjp(node=" + text(v.node) + ", cotangents=" + text(v.cotangents) +
                   ", outputs=" + text(v.outputs) + ")";
        });
    nb::class_<Join>(module, "Join", "target = ((sources[0] + sources[1]) + sources[2]) ...")
        .def_ro("target", &Join::target)
        .def_ro("sources", &Join::sources)
        .def("__repr__", [](const Join& j) {
            return "Join(target=" + text(j.target) + ", sources=" + text(j.sources) + ")";
        });
    nb::class_<Pass>(module, "Pass", "target = source where `node` was skipped, 0 where it ran.")
        .def_ro("node", &Pass::node)
        .def_ro("plane", &Pass::plane)
        .def_ro("target", &Pass::target)
        .def_ro("source", &Pass::source)
        .def("__repr__", [](const Pass& p) {
            return "Pass(node=" + text(p.node) + ", plane=" + text(p.plane) + ", target=" + text(p.target) +
                   ", source=" + text(p.source) + ")";
        });
}

void bindTransposed(nb::module_& module) {
    nb::class_<Share>(module, "Share", "One term of a gradient, by node and argument (-1: passed through).")
        .def_ro("node", &Share::node)
        .def_ro("argument", &Share::argument)
        .def_ro("buffer", &Share::buffer);
    nb::class_<Gradient>(module, "Gradient", "The adjoint of a plane's value before the launch.")
        .def_ro("plane", &Gradient::plane)
        .def_ro("buffer", &Gradient::buffer, "-1 for a structural zero.")
        .def_ro("shares", &Gradient::shares, "Its terms, in the order in which they are added.");
    nb::class_<Transposed>(module, "Transposed", "The reverse of one launch of a graph.")
        .def_ro("copies", &Transposed::copies,
                "In the order in which they are taken; independent of the seeds.")
        .def_ro("sources", &Transposed::sources,
                "Per node and needed access: a copy, or -1 for the plane itself.")
        .def_ro("steps", &Transposed::steps)
        .def_ro("buffer_planes", &Transposed::buffer_planes, "Per buffer: the plane whose shape it has.")
        .def_ro("seed_buffers", &Transposed::seed_buffers, "Per seed.")
        .def_ro("gradients", &Transposed::gradients,
                "By plane: those differentiated at their first version.");
}

}  // namespace

void bindDiff(nb::module_& module) {
    bindDescription(module);
    bindSteps(module);
    bindTransposed(module);
    module.def("copies", &copies, "description"_a,
               "The copies that a recording launch takes: `transpose(...).copies`.");
    module.def(
        "transpose",
        [](const Description& description, const Pairs& seeds) {
            return transpose(description, seedsOf(seeds));
        },
        "description"_a, "seeds"_a,
        "The steps that reverse one launch. Seeds are (node, plane) pairs: the plane as that node wrote it.\n\n"
        "Raises ValueError for a seed of a plane that its node does not write, or that is seeded already.");
}
