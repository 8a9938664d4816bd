/**
 * A plugin of typedoc: pages get their headings as titles and the groups of docs/index.md, and exports are grouped by what
 * they are for, which the folder that declares them tells.
 */
import { readFileSync } from "node:fs";
import { Application, Comment, CommentTag, Converter, ReflectionKind } from "typedoc";

/** The first whose path in `src` fits counts. */
const GROUPS = [
  [/^(file|base)\/metadata/, "Metadata"],
  [/^(decode\/statistics|file\/comparison)/, "Look at weights"],
  [/^(decode\/product|file\/products|reference\/products)/, "Products"],
  [/^(file|source|safetensors)\//, "Open models"],
  [/^base\/errors/, "Errors"],
  [/^writer\//, "Write models"],
  [/^(reference\/)?quantize/, "Quantize"],
  [/^convert\//, "Convert checkpoints"],
  [/^(backend|wasm)\//, "WebAssembly"],
  [/^tokenizer\//, "Text and tokens"],
  [/^(reference\/)?network/, "Networks"],
  [/^embeddings\//, "Vectors of texts"],
  [/^/, "Weights to numbers"],
];

const ORDER = ["Open models", "Metadata", "Look at weights", "Weights to numbers", "Products", "*", "Errors"];

export function load(app) {
  app.on(Application.EVENT_BOOTSTRAP_END, () => app.options.setValue("groupOrder", ORDER));
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const page of project.getReflectionsByKind(ReflectionKind.Document)) {
      const [file] = /[^/]+$/.exec(page.name);
      const text = page.content.map((part) => part.text).join("");
      page.name = /^# (.+)$/m.exec(text)?.[1] ?? page.name;
      page.frontmatter.group = groupOfPage(`${file}.md`);
    }
    for (const { children = [] } of project.getReflectionsByKind(ReflectionKind.SomeModule)) {
      for (const child of children) {
        const path = project.getSymbolIdFromReflection(child)?.packagePath.replace(/^(src|dist)\//, "");
        const group = GROUPS.find(([pattern]) => pattern.test(path))[1];
        for (const commented of child.signatures ?? [child]) addGroup(commented, group);
      }
    }
  });
}

/** The line above the list of docs/index.md that has the page. */
function groupOfPage(file) {
  const sections = readFileSync("docs/index.md", "utf8").split(/^(?=\S.*:$)/m);
  const section = sections.find((each) => each.includes(`(${file})`) || each.includes(`(../${file})`));
  return section === undefined ? "Documentation" : section.slice(0, section.indexOf(":"));
}

function addGroup(reflection, group) {
  reflection.comment ??= new Comment();
  reflection.comment.blockTags.push(new CommentTag("@group", [{ kind: "text", text: group }]));
}
