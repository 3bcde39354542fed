#include "fleet/svg/svg.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/xml_test.hpp"
#include "fleet/fleet_test.hpp"
#include "fleet/svg/svg_hall.hpp"
#include "report/svg/svg_canvas.hpp"

namespace orrery {
namespace {

constexpr std::size_t kBytesMax = 1 << 20;
constexpr std::size_t kShapesMax = 2000;

std::string picture_of(const std::string& yaml) {
  const Topology topology = built(yaml);
  return draw_svg(topology, summarize(topology));
}

std::size_t count_of(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::size_t shapes_of(const std::string& svg) {
  std::size_t shapes = 0;
  for (const char* element : {"<rect", "<path", "<line", "<text"}) shapes += count_of(svg, element);
  return shapes;
}

// 1,024 pods of four racks of four: 16,384 nodes on three tiers.
std::string large_fleet() {
  return one_hall(
      "    - name: su\n      count: 1024\n      racks:\n      - count: 4\n        cooling: "
      "in-row-or-dense-air\n        nodes: [{type: dgx-h100, count: 4}]\n"
      "  fabrics: [{type: roce-400-th5, topology: rail-optimized-fat-tree}]\n");
}

// Has more of everything than is drawn: sites, halls, networks, kinds of racks and of accelerators.
std::string crowded_fleet() {
  std::string yaml = "apiVersion: orrery/v1\nkind: Fleet\nname: crowded\nsites:\n";
  for (int site = 1; site <= 9; ++site) {
    yaml += fmt::format("- name: site-{}\n  fabrics:\n", site);
    for (int fabric = 1; fabric <= 9; ++fabric) {
      yaml += fmt::format(
          "  - {{name: f{}, type: roce-400-th5, topology: fat-tree, node_types: "
          "[dgx-h100], unit_nodes: 2}}\n",
          fabric);
    }
    yaml += "  halls:\n";
    for (int hall = 1; hall <= 7; ++hall) {
      yaml += fmt::format("  - name: hall-{}\n    pods:\n", hall);
      for (int pod = 1; pod <= 9; ++pod) {
        yaml += fmt::format(
            "    - name: pod-{}\n      racks: [{{count: 9, nodes: [{{type: "
            "dgx-h100}}, {{type: dgx-a100-80g}}, {{type: l4-4, count: 5}}]}}]\n",
            pod);
      }
    }
  }
  return yaml;
}

TEST(DrawSvg, IsWellFormedXmlThatSaysWhatTheFleetHolds) {
  const std::string svg = picture_of(small_h100());
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1200 "));
  EXPECT_NE(svg.find("<title>test: 16 nodes, 128 accelerators</title>"), svg.npos);
  EXPECT_NE(svg.find(">128 H100 SXM5 80 GB"), svg.npos);
  EXPECT_NE(svg.find(">su-1<"), svg.npos);
  EXPECT_NE(svg.find(">su-2<"), svg.npos);
  EXPECT_EQ(count_of(svg, ">40.8 / 60 kW<"), 4u);
}

TEST(DrawSvg, ASiteWithoutNodesHasNoAssumedPue) {
  std::string yaml = small_h100();
  EXPECT_EQ(count_of(picture_of(yaml), "PUE "), 1u);
  if (!yaml.ends_with('\n')) yaml += '\n';
  yaml +=
      "- name: annex\n  halls: [{name: h, pods: [{racks: [{count: 0, nodes: [{type: l4-4}]}]}]}]\n";
  const std::string svg = picture_of(yaml);
  EXPECT_NE(svg.find(">annex<"), svg.npos);
  EXPECT_EQ(count_of(svg, "PUE "), 1u);
}

TEST(DrawSvg, IsTheSameForTheSameFleet) {
  EXPECT_EQ(picture_of(large_fleet()), picture_of(large_fleet()));
}

TEST(DrawSvg, RefersToNothingOutsideItself) {
  std::string svg = picture_of(small_h100());
  svg.erase(svg.find("xmlns="), std::string_view("xmlns=\"http://www.w3.org/2000/svg\"").size());
  for (const char* reference : {"http", "href", "url(", "@import", "<script"}) {
    EXPECT_EQ(svg.find(reference), svg.npos) << reference;
  }
}

TEST(DrawSvg, EscapesTheDescription) {
  std::string yaml = small_h100();
  yaml.insert(yaml.find("sites:"), "description: 'a <b> & \"c\" d'\n");
  const std::string svg = picture_of(yaml);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_NE(svg.find("a &lt;b&gt; &amp; &quot;c&quot; d"), svg.npos);
}

TEST(DrawSvg, CountsWhatItLeavesOutOfALargeFleet) {
  const std::string svg = picture_of(large_fleet());
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_LE(svg.size(), kBytesMax);
  EXPECT_LE(shapes_of(svg), kShapesMax);
  EXPECT_NE(svg.find("16,384 nodes"), svg.npos);
  EXPECT_NE(svg.find(">131,072<"), svg.npos);
  EXPECT_NE(svg.find("+ 1,020 more pods with 16,320 nodes"), svg.npos);
}

TEST(DrawSvg, StaysSmallWhereEverythingIsMany) {
  const std::string svg = picture_of(crowded_fleet());
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_LE(svg.size(), kBytesMax);
  EXPECT_LE(shapes_of(svg), kShapesMax);
  EXPECT_NE(svg.find("+ 3 more sites with"), svg.npos);
  EXPECT_NE(svg.find("+ 3 more halls"), svg.npos);
  EXPECT_NE(svg.find("+ 7 more networks"), svg.npos);
}

TEST(DrawSvg, DrawsARackOfThousandsOfNodesAsABlock) {
  const std::string svg = picture_of(
      one_hall("    - racks: [{cooling: immersion-two-phase, nodes: [{type: laptop-ryzen-7840u, "
               "count: 3000}]}]\n"));
  EXPECT_NE(svg.find(">3,000 nodes<"), svg.npos);
  EXPECT_LE(shapes_of(svg), 80u);
}

TEST(DrawSvg, OutlinesAPodThatIsOneTorus) {
  const std::string svg = picture_of(
      one_hall("    - torus: {shape: [4, 4, 8], cube: [4, 4, 4]}\n      racks: [{count: 2, nodes: "
               "[{type: tpu-v5p-host, count: 16}]}]\n"));
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_NE(svg.find(">4 x 4 x 8<"), svg.npos);
  EXPECT_NE(svg.find("one scale-up torus"), svg.npos);
}

TEST(DrawSvg, WritesTheOversubscriptionOfANetwork) {
  const std::string svg = picture_of(
      one_hall("    - racks: [{count: 16, cooling: in-row-or-dense-air, nodes: [{type: dgx-h100, "
               "count: 4}]}]\n  fabrics: [{type: ib-ndr, topology: fat-tree, unit_nodes: 4, "
               "leaf_oversubscription: 4}]\n"));
  EXPECT_NE(svg.find("1:4 oversubscribed"), svg.npos);
  EXPECT_NE(svg.find(">16 leaves<"), svg.npos);
}

TEST(SampleChildren, TakesOneOfEveryKindBeforeASecondOfAny) {
  const Topology topology =
      built(one_hall("    - {name: a, count: 5, racks: [{nodes: [{type: l4-4}]}]}\n"
                     "    - {name: b, racks: [{nodes: [{type: l4-4}]}]}\n"
                     "    - {name: c, count: 2, racks: [{nodes: [{type: l4-4}]}]}\n"));
  const auto names = [&](std::uint32_t budget) {
    std::string text;
    for (const DomainId id : sample_children(topology, DomainId(2), budget)) {
      text += topology.short_name(id) + " ";
    }
    return text;
  };
  EXPECT_EQ(names(2), "a-1 b ");
  EXPECT_EQ(names(4), "a-1 a-2 b c-1 ");
  EXPECT_EQ(names(100), "a-1 a-2 a-3 a-4 a-5 b c-1 c-2 ");
}

TEST(SvgCanvas, CutsTextThatDoesNotFitBetweenCharacters) {
  const TextStyle style{.size = 10};
  EXPECT_NEAR(text_width("Hello", style), 22.78, 1e-9);  // 722 + 556 + 222 + 222 + 556
  SvgCanvas canvas;
  canvas.fitted_text({0, 0}, 1000, "whole", style);
  canvas.fitted_text({0, 0}, 20, "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9", style);
  canvas.fitted_text({0, 0}, 1, "nothing", style);
  EXPECT_NE(canvas.elements().find(">whole<"), std::string::npos);
  EXPECT_NE(canvas.elements().find(">\u00e9\u00e9\u2026<"), std::string::npos);
  EXPECT_EQ(count_of(canvas.elements(), "<text"), 2u);
}

TEST(SvgCanvas, ColoursABarFromGreenToRed) {
  EXPECT_EQ(fill_colour(0), "#46a570");
  EXPECT_EQ(fill_colour(1), "#d44442");
  EXPECT_EQ(fill_colour(7), fill_colour(1));
}

TEST(SvgCanvas, WritesNumbersShortly) {
  EXPECT_EQ(svg_number(12.04), "12");
  EXPECT_EQ(svg_number(-0.01), "0");
  EXPECT_EQ(svg_number(1234.56), "1234.6");
}

}  // namespace
}  // namespace orrery
