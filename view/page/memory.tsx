/** What a model takes to run with a context of so many tokens. */
import type { CacheBytes, MemoryUse } from "#dist/describe/memory";
import { memoryRemarks } from "#dist/describe/memory-remarks";
import { counted, grouped, humanBytes } from "#dist/describe/text";
import type { ModelView } from "../lib/protocol";
import { ask, useAnswer } from "./client";
import { Answered, Section, Table } from "./parts";
import { ShareBar, shadeOf } from "./pictures";
import { useView } from "./place";

const CONTEXTS = [2048, 8192, 32_768, 131_072];
const MOST = 2 ** 31;

function isContext(tokens: number): boolean {
  return Number.isInteger(tokens) && tokens >= 1 && tokens <= MOST;
}

export function Memory({ model }: { model: ModelView }) {
  const usual = model.contextLength ?? 4096;
  const [text, setText] = useView("context", String(usual));
  const context = isContext(Number(text)) ? Number(text) : usual;
  const setContext = (tokens: number): void => setText(String(tokens));
  const answer = useAnswer(`${model.id} ${context}`, (options) => ask("memory", { model: model.id, context }, options));
  const offered = [...new Set([...CONTEXTS, ...(model.contextLength ? [model.contextLength] : [])])];
  return (
    <div class="page">
      <Section title="Context">
        <div class="fields">
          <label class="field">
            Tokens of context
            <input
              type="number"
              min={1}
              max={MOST}
              value={context}
              onInput={(event) => {
                const wanted = Math.floor(event.currentTarget.valueAsNumber);
                if (isContext(wanted)) setContext(wanted);
              }}
            />
          </label>
          {offered
            .sort((a, b) => a - b)
            .map((tokens) => (
              <button key={tokens} type="button" aria-pressed={tokens === context} onClick={() => setContext(tokens)}>
                {grouped(tokens)}
              </button>
            ))}
        </div>
        {model.contextLength === null ? null : (
          <p class="note">The model was made for {counted(model.contextLength, "token")}.</p>
        )}
      </Section>
      <Answered answer={answer} label="Counting">
        {(use) => <Use use={use} />}
      </Answered>
    </div>
  );
}

function Use({ use: { weights, cache } }: { use: MemoryUse }) {
  const { perToken, bytes, isAtMost } = cache;
  const amount = (value: number | null): string =>
    value === null ? "?" : `${isAtMost && value > 0 ? "≤ " : ""}${humanBytes(value)}`;
  const total = bytes.f16 === null ? null : bytes.f16 + weights.bytes;
  return (
    <>
      <Section title="Together" note={total === null ? undefined : `${amount(total)} with a cache of f16`}>
        <ShareBar
          label="Memory"
          parts={[
            { name: "weights", bytes: weights.bytes, shade: 0 },
            { name: "cache", bytes: bytes.f16 ?? 0, shade: 1 },
          ]}
        />
        <p class="note legend-text">
          <i class="swatch shade" style={shadeOf(0)} /> weights {humanBytes(weights.bytes)}{" "}
          <i class="swatch shade" style={shadeOf(1)} /> cache {amount(bytes.f16)}
        </p>
      </Section>
      <Section title="Cache of keys and values">
        <Table
          label="Cache of keys and values"
          columns={[
            "Cache",
            ...["Per token", "Whole", "With weights"].map((title) => ({ title, isNumber: true as const })),
          ]}
          rows={(Object.keys(bytes) as (keyof CacheBytes)[]).map((type) => {
            const whole = bytes[type];
            return [type, amount(perToken[type]), amount(whole), amount(whole === null ? null : whole + weights.bytes)];
          })}
        />
        <ul class="note">
          {memoryRemarks(cache).map((remark) => (
            <li key={remark}>{remark}</li>
          ))}
        </ul>
      </Section>
      <Section title="Weights" note={humanBytes(weights.bytes)}>
        <Table
          label="Weights"
          columns={["Type", { title: "Tensors", isNumber: true }, { title: "Bytes", isNumber: true }]}
          rows={Array.from(weights.types, ([type, { tensors, bytes: size }]) => [
            type,
            grouped(tensors),
            humanBytes(size),
          ])}
        />
      </Section>
    </>
  );
}
