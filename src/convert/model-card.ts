/**
 * What a model is called, who made it, from what, and what one may do with it: from the card, `README.md`, the
 * configuration, and the name of the folder.
 */
import type { Entry } from "./architectures";
import type { Card, Yaml } from "./front-matter";
import { type NameParts, partsOfName } from "./model-name";

/** Keys of the metadata in their order, `general.` left out, and what cards call them: the first that is there counts. */
const TEXTS: readonly (readonly [key: string, theirs: readonly string[]])[] = [
  ["name", ["name", "model_name"]],
  ["author", ["author", "model_author", "model_creator"]],
  ["version", ["version", "model_version"]],
  ["organization", ["organization", "model_organization"]],
  ["finetune", ["finetune", "model_finetune"]],
  ["basename", ["basename", "model_basename", "model_type"]],
  ["description", ["description", "model_description"]],
  ["size_label", ["size_label", "model_size_label"]],
  ["license", ["license"]],
  ["license.name", ["license_name"]],
  ["license.link", ["license_link"]],
  ["source.url", ["url", "model_url"]],
  ["source.doi", ["doi", "model_doi"]],
  ["source.uuid", ["uuid", "model_uuid"]],
  ["source.repo_url", ["repo_url", "model_repo_url"]],
];

/** Lists of what a model comes from. */
const ORIGINS: readonly (readonly [key: string, theirs: readonly string[]])[] = [
  ["base_model", ["base_model", "base_models", "base_model_sources"]],
  ["dataset", ["datasets", "dataset", "dataset_sources"]],
];

const ORIGIN_KEYS = [
  ...["name", "author", "version", "organization", "description"],
  ...["url", "doi", "uuid", "repo_url"],
] as const;

/** Lists of words, which are joined. */
const LISTS: readonly (readonly [key: string, theirs: readonly string[]])[] = [
  ["tags", ["tags", "pipeline_tag"]],
  ["languages", ["languages", "language"]],
];

/** How null is written. */
const NULL = /^(~|null|Null|NULL)?$/;

const isText = (value: Yaml | undefined): value is string => typeof value === "string" && !NULL.test(value);

/** One text of a card; several licences become one. */
function textOf(value: Yaml | undefined): string | undefined {
  if (Array.isArray(value)) return value.filter(isText).join(",") || undefined;
  return isText(value) ? value : undefined;
}

const listOf = (value: Yaml | undefined): readonly Yaml[] =>
  Array.isArray(value) ? value : isText(value) ? [value] : [];

/** What is known of a model that a card names: by its identifier on the hub, by a URL, or part by part. */
function originOf(value: Yaml, weights: number): Readonly<Record<string, Yaml | undefined>> {
  if (typeof value !== "string") return value !== null && !Array.isArray(value) ? (value as Card) : {};
  const isUrl = /^(https?|ssh):\/\//.test(value);
  const id = isUrl ? /^https?:\/\/huggingface\.co\/([^/]+\/[^/]+)$/.exec(value)?.[1] : value;
  const { name, version, organization }: NameParts = id === undefined ? {} : partsOfName(id, weights);
  const page = organization === undefined ? undefined : `https://huggingface.co/${id}`;
  return { name, version, organization, repo_url: isUrl ? value : page };
}

/**
 * The entries about a model.
 * @param name in place of what it is called elsewhere
 * @param ids what its configuration and its folder call it
 * @param weights how many it has; those of matrices that an adapter changes are negative
 */
export function describe(
  name: string | undefined,
  card: Card,
  ids: readonly string[],
  weights: number,
  label?: string,
): Entry[] {
  const parts = ids.map((id): Record<string, string | undefined> => partsOfName(id, weights));
  parts.unshift({ name });
  parts.push({ size_label: weights > 0 ? label : undefined });
  const entries: Entry[] = [];
  for (const [key, theirs] of TEXTS) {
    const [own, ...others] = parts.map((each) => each[key]);
    const value = [own, ...theirs.map((each) => textOf(card[each])), ...others].find((each) => each !== undefined);
    if (value !== undefined) entries.push([`general.${key}`, value, "string"]);
  }
  for (const [key, theirs] of ORIGINS) {
    const given = theirs.find((each) => each in card);
    if (given === undefined) continue;
    const origins = listOf(card[given]);
    entries.push([`general.${key}.count`, origins.length, "uint32"]);
    for (const [i, each] of origins.entries()) {
      const origin = originOf(each, weights);
      for (const part of ORIGIN_KEYS) {
        const value = textOf(origin[part]);
        if (value !== undefined) entries.push([`general.${key}.${i}.${part}`, value, "string"]);
      }
    }
  }
  for (const [key, theirs] of LISTS) {
    const words = theirs.flatMap((each) => listOf(card[each])).filter(isText);
    if (words.length > 0) entries.push([`general.${key}`, words, "string[]"]);
  }
  return entries;
}
