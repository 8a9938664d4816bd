/** A text that is typed, and its tokens. It goes to the worker, or to the server of `gguf-native view`, and nowhere else. */
import { useEffect, useState } from "preact/hooks";
import { counted, grouped } from "#dist/describe/text";
import type { ModelView } from "../lib/protocol";
import type { TextTokens as Tokens } from "../lib/text-tokens";
import { ask, useAnswer } from "./client";
import { Failure, Progress } from "./parts";

/** The most characters of a text. */
const MOST_TEXT = 20_000;
/** The colours that tokens take turns in. */
const COLORS = ["a", "b", "c", "d", "e"];

export function TextTokens({ model }: { model: ModelView }) {
  const [text, setText] = useState("");
  const [special, setSpecial] = useState(true);
  const isEmpty = text === "";
  const answer = useAnswer<Tokens | undefined>(`${special} ${text}`, async (options) =>
    isEmpty ? undefined : ask("tokens", { model: model.id, text, special }, options),
  );
  // While one types, the tokens of what was there are better than none.
  const [last, setLast] = useState<Tokens | undefined>(undefined);
  useEffect(() => {
    if (answer.state !== "busy") setLast(answer.state === "done" ? answer.result : undefined);
  }, [answer]);
  const shown = answer.state === "done" ? answer.result : answer.state === "busy" ? last : undefined;
  return (
    <section class="text-tokens" aria-label="Tokens of a text" data-testid="text-tokens">
      <textarea
        aria-label="Text to tokens"
        placeholder="Type a text to see its tokens"
        rows={isEmpty ? 1 : 3}
        maxLength={MOST_TEXT}
        value={text}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {isEmpty ? null : (
        <>
          <div class="fields">
            <label class="check">
              <input type="checkbox" checked={special} onChange={(event) => setSpecial(event.currentTarget.checked)} />
              Control tokens by name
            </label>
            <span class="note" role="status" data-testid="token-count">
              {shown === undefined ? "" : counted(shown.count, "token")}
            </span>
          </div>
          {answer.state === "failed" ? <Failure message={answer.message} /> : null}
          {shown === undefined ? (
            answer.state === "busy" ? (
              <Progress label="Reading the vocabulary" />
            ) : null
          ) : (
            <TokenList shown={shown} />
          )}
        </>
      )}
    </section>
  );
}

function TokenList({ shown: { tokens, count } }: { shown: Tokens }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long list is scrolled by keys
    <ol class="token-list" aria-label="Tokens" data-testid="tokens" tabIndex={0}>
      {tokens.map(({ id, text, bytes }, i) => (
        <li key={i} class="token" style={{ background: `var(--token-${COLORS[i % COLORS.length]})` }}>
          <code class="token-text">{text}</code>
          <span class="token-id">{id}</span>
          <span class="token-bytes">{bytes}</span>
        </li>
      ))}
      {count > tokens.length ? <li class="note">and {grouped(count - tokens.length)} more</li> : null}
    </ol>
  );
}
