/** The tokens of the vocabulary, with search, and those of a text. */
import { useMemo } from "preact/hooks";
import { float32Text, grouped } from "#dist/describe/text";
import type { ModelView, Vocabulary } from "../lib/protocol";
import { ask, useAnswer } from "./client";
import { Grid } from "./grid";
import { matchesText } from "./metadata";
import { Answered, Search } from "./parts";
import { useView } from "./place";
import { TextTokens } from "./text-tokens";

export function VocabularyTab({ model }: { model: ModelView }) {
  const answer = useAnswer(`${model.id}`, (options) => ask("vocabulary", model.id, options));
  if (model.tokenCount === 0) return <p class="page note">This file has no vocabulary.</p>;
  return (
    <Answered answer={answer} label="Reading the vocabulary">
      {(vocabulary) => <Tokens vocabulary={vocabulary} model={model} />}
    </Answered>
  );
}

function Tokens({ vocabulary, model }: { vocabulary: Vocabulary; model: ModelView }) {
  const { tokens, types, scores, count } = vocabulary;
  const [search, setSearch] = useView("search");
  const lower = useMemo(() => tokens.map((token) => token.toLowerCase()), [tokens]);
  const found = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    if (wanted === "") return undefined;
    const matches: number[] = [];
    // The number of a token finds it, too.
    if (/^\d+$/.test(wanted) && Number(wanted) < tokens.length) matches.push(Number(wanted));
    for (const [id, text] of lower.entries()) {
      if (text.includes(wanted) && id !== matches[0]) matches.push(id);
    }
    return matches;
  }, [lower, tokens, search]);
  const shown = found?.length ?? tokens.length;
  const columns = [
    { title: "Number", className: "c-number number note" },
    { title: "Token", className: "c-token name" },
    ...(types.some((type) => type !== undefined) ? [{ title: "Type", className: "c-type note" }] : []),
    ...(scores.some((score) => score !== undefined) ? [{ title: "Score", className: "c-score number" }] : []),
  ];
  return (
    <div class="full">
      <TextTokens model={model} />
      <Search
        label="Search tokens"
        value={search}
        onInput={setSearch}
        matches={
          tokens.length < count && found === undefined
            ? `the first ${grouped(tokens.length)} of ${grouped(count)} tokens`
            : matchesText(shown, tokens.length, "token")
        }
      />
      <Grid
        label="Tokens"
        columns={columns}
        count={shown}
        search={search}
        rowHeight={36}
        row={(i) => {
          const id = found === undefined ? i : (found[i] as number);
          const score = scores[id];
          const cells: Record<string, string> = {
            Number: grouped(id),
            Token: tokens[id] as string,
            Type: types[id] ?? "",
            Score: score === undefined ? "" : float32Text(score),
          };
          return { cells: columns.map(({ title }) => cells[title]) };
        }}
      />
    </div>
  );
}
