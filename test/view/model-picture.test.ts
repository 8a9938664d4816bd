/** A model at a glance: the picture that the page and `gguf-native inspect --picture` draw. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { openSync } from "gguf-native";
import { type Coloring, modelPicture, shadeColor, svgText } from "#dist/describe/model-picture";
import { tensorTable } from "#dist/describe/tensor-table";
import { at, EVIL, expectFailure, expectPicture, run } from "../support/cli";
import { sampleModel } from "../support/sample-model";
import { noPage, pages, servePage } from "../support/view-page";

/** Tensors of a weight each, unless said otherwise. */
function tableOf(names: readonly string[], bytes = (_: string) => 4, types = (_: string) => "F32") {
  const all = [...new Set(names.map(types))];
  const list = names.map((name) => ({
    ...{ name, type: types(name), shape: [1], elementCount: 1, byteLength: bytes(name), offset: 0 },
  }));
  return tensorTable(list, all);
}

const draw = (table: ReturnType<typeof tableOf>, options = {}): string => {
  const svg = svgText(modelPicture(table, { title: "m.gguf", ...options }));
  expectPicture(svg);
  return svg;
};

/** What the cells are, and their colours. */
const cellsOf = (svg: string): [title: string, fill: string][] =>
  Array.from(svg.matchAll(/<title>([^<]*)<\/title><rect [^>]*?fill="([^"]*)"/g), ([, title, fill]) => [
    title!,
    fill!,
  ]);
const places = (svg: string, name: string): number[] => {
  const [, x, y, width] = new RegExp(
    `<title>${name},[^<]*</title><rect x="([^"]*)" y="([^"]*)" width="([^"]*)"`,
  ).exec(svg)!;
  return [x, y, width].map(Number);
};

describe("the picture of a model", () => {
  const layers = [10, 0, 2].flatMap((i) => [`blk.${i}.ffn_up.weight`, `blk.${i}.attn_q.weight`]);
  const table = tableOf(["token_embd.weight", ...layers], (name) => (name.includes("embd") ? 1e9 : 400));

  test("has layers in order across, kinds down, and apart what is outside", () => {
    const svg = draw(table);
    assert.equal(cellsOf(svg).length, 7);
    const [q0, q2, q10] = [0, 2, 10].map((i) => places(svg, `blk\\.${i}\\.attn_q\\.weight`));
    const [up0] = [places(svg, "blk\\.0\\.ffn_up\\.weight")];
    assert.ok(q0![0]! < q2![0]! && q2![0]! < q10![0]!);
    assert.deepEqual([q0![1], q0![0]], [q10![1], up0![0]]);
    assert.ok(q0![1]! < up0![1]!);
    assert.ok(places(svg, "token_embd\\.weight")[0]! > q10![0]!);
    assert.match(svg, /3 layers, 7 tensors, 7 weights, 954 MiB/);
  });
  test("is coloured by type, with a legend", () => {
    const svg = draw(tableOf(layers, undefined, (name) => (name.includes("ffn") ? "Q4_K" : "Q6_K")));
    for (const [title, fill] of cellsOf(svg)) {
      assert.equal(fill, shadeColor(title.includes("Q4_K") ? 0 : 1, false), title);
    }
    assert.match(svg, />Q4_K 12 B<.*>Q6_K 12 B</);
  });
  test("or by a number; what is outside pales no other, what is not known has no colour", () => {
    const bySize: Coloring = {
      ...{ title: "size", choose: "sum", isLogarithmic: true, textOf: (n) => `${n} B` },
      numberOf: (i) => (i === 3 ? undefined : i < 5 ? (table.byteLengths[i] as number) : 800),
    };
    const svg = draw(table, { coloring: bySize, isDark: true });
    const fills = cellsOf(svg).map(([, fill]) => fill);
    assert.equal(new Set(fills).size, 3);
    assert.ok(fills.includes("none"));
    assert.match(svg, />400 B<.*>800 B</);
    const none = draw(table, { coloring: { ...bySize, numberOf: () => undefined } });
    assert.match(none, />not measured</);
    const exact = draw(table, {
      coloring: { ...bySize, isLogarithmic: false, numberOf: () => Infinity, textOf: () => "exact" },
    });
    assert.match(exact, />exact</);
  });
  test("of hostile names has them as text", () => {
    const names = [
      EVIL,
      "</title><script>alert(1)</script>",
      '"><img src=x onerror=alert(1)>',
      "",
      "..",
      "x".repeat(9000),
      "漢".repeat(200),
      "__proto__",
      "constructor",
    ];
    const svg = draw(
      tableOf([
        ...names,
        ...names.map((name) => `blk.0.${name}.weight`),
        ...names.map((name) => `${name}.1.a`),
      ]),
      { title: EVIL.slice(0, 40).replace(/[^ -~]/g, "") },
    );
    assert.equal(svg.match(/<(?!\/?(svg|title|rect|text|g)\b)/g), null);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
    assert.doesNotMatch(svg.trimEnd(), /[\0-\x1f\x7f\u2028-\u202e]/);
  });
  test("of nothing, of one layer, and of very many tensors", () => {
    assert.match(draw(tableOf([])), /0 tensors, 0 weights, 0 B/);
    assert.equal(cellsOf(draw(tableOf(["a"]))).length, 1);
    const counted = (svg: string) =>
      cellsOf(svg).reduce(
        (sum, [title]) => sum + Number((/^([\d,]+) tensors?,/.exec(title)?.[1] ?? "1").replace(",", "")),
        0,
      );
    for (const nameOf of [
      (i: number) => `blk.${i >> 3}.t${i & 7}.weight`,
      (i: number) => `blk.0.t${i}.weight`,
      (i: number) => `blk.${i % 7}.experts.${i}.up`,
      (i: number) => `t${i}`,
      (i: number) => `blk.${i}.${String.fromCharCode(97 + (i % 26), 97 + (i % 23), 97 + (i % 17))}`,
      (i: number) => String.fromCharCode(97 + (i % 26), 97 + (i % 23), 97 + (i % 17)) + i,
    ]) {
      for (const width of [1000, 326]) {
        const svg = draw(tableOf(Array.from({ length: 10_000 }, (_, i) => nameOf(i))), { width });
        assert.ok(cellsOf(svg).length <= 128 * 64 + 64 && svg.length < 4e6, `${svg.length}`);
        assert.equal(counted(svg), 10_000, nameOf(8));
      }
    }
  });
});

describe("inspect --picture", () => {
  writeFileSync(at("sample.gguf"), sampleModel());
  test("draws the same picture, and replaces a file only with --force", async () => {
    const { status, stdout, stderr } = await run("inspect sample.gguf --picture model.svg");
    assert.deepEqual([status, /^model\.svg: [\d.]+ KiB\n$/.test(stderr)], [0, true], stderr);
    assert.match(stdout, /^sample\.gguf/);
    const svg = readFileSync(at("model.svg"), "utf8");
    expectPicture(svg);
    assert.equal(cellsOf(svg).length, 20);
    assert.ok(svg.includes("<title>sample.gguf</title>"));
    writeFileSync(at("model.svg"), "mine");
    await expectFailure("inspect sample.gguf --picture model.svg", 1, /model\.svg: exists already/);
    await expectFailure("inspect sample.gguf --force --picture sample.gguf", 1, /sample\.gguf/);
    assert.equal(readFileSync(at("model.svg"), "utf8"), "mine");
    assert.equal((await run("inspect sample.gguf --force --picture model.svg")).status, 0);
    assert.equal(readFileSync(at("model.svg"), "utf8"), svg);
    await expectFailure("inspect sample.gguf sample.gguf --picture x.svg", 2, /--picture is for one model/);
  });
});

describe("on the page", { skip: noPage, timeout: 600_000 }, () => {
  const { openChosen, open } = pages();
  const path = at("shown.gguf");
  writeFileSync(path, sampleModel());

  test("every cell opens its tensor, by keys too; the saved picture is that of the command", async () => {
    await using view = await openChosen([path], { acceptDownloads: true });
    const picture = view.page.getByTestId("model-picture");
    const cell = (name: string) =>
      picture.getByRole("link", { name: new RegExp(`^${name.replaceAll(".", "\\.")}, `) });
    await cell("blk.1.ffn_up.weight").waitFor();
    assert.equal(await picture.getByRole("link").count(), 20);
    await run("inspect shown.gguf --force --picture shown.svg");
    for (const [kind, begin] of [
      ["SVG", readFileSync(at("shown.svg"), "latin1")],
      ["PNG", "\x89PNG"],
    ] as const) {
      const waiting = view.page.waitForEvent("download");
      await view.page.getByRole("button", { name: `Save as ${kind}` }).click();
      const download = await waiting;
      assert.equal(download.suggestedFilename(), `shown.gguf.${kind.toLowerCase()}`);
      assert.equal(readFileSync(await download.path(), "latin1").slice(0, begin.length), begin);
    }
    await cell("blk.0.attn_k.weight").focus();
    for (const key of ["ArrowDown", "ArrowRight", "Enter"]) await view.page.keyboard.press(key);
    const region = view.page.getByTestId("tensor");
    await region.getByRole("heading", { name: "blk.1.attn_norm.weight", exact: true }).waitFor();
    await view.page.goBack();
    await cell("token_embd.weight").click();
    await region.getByRole("heading", { name: "token_embd.weight", exact: true }).waitFor();
  });
  test("colours are what was measured, and with two models signal to noise", async () => {
    await using view = await open(await servePage([path], [path]));
    await view.opened();
    await view.tab("Summary");
    const name = "blk.0.attn_q.weight";
    const { std, zeros, count, min, max, mean } = openSync(path).tensor(name).statsSync();
    const short = (value: number) => String(Number(value.toPrecision(4)));
    const choice = view.page.getByLabel("Colours show");
    for (const [option, text] of [
      ["Deviation", `deviation ${short(std)}`],
      ["Share of zeros", `zeros ${short((100 * zeros) / count)} %`],
      ["Outliers", `farthest from the mean, in deviations ${short(Math.max(mean - min, max - mean) / std)}`],
      ["Signal to noise", "signal to noise exact"],
    ] as const) {
      await choice.selectOption(option);
      await view.page
        .getByRole("link", { name: `${name}, Q4_K, ` })
        .and(view.page.getByLabel(`, ${text}`))
        .waitFor();
    }
    await view.page.waitForURL(/#summary\?colours=snr$/);
  });
});
