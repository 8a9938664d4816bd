/** What a model is, and where its bytes are. */
import { useMemo } from "preact/hooks";
import { grouped, humanBytes, humanCount } from "#dist/describe/text";
import { layersOf } from "../lib/layers";
import type { ModelView } from "../lib/protocol";
import { Facts, Section, Table } from "./parts";
import { LayersPicture, layersShare, ShareBar, shadeOf } from "./pictures";

/** Columns of the picture at most. */
const MOST_LAYERS = 128;

const number = (title: string): { title: string; isNumber: true } => ({ title, isNumber: true });

export function Summary({ model }: { model: ModelView }) {
  const { facts, types, tensors } = model;
  const layers = useMemo(() => layersOf(tensors, MOST_LAYERS), [tensors]);
  const order = useMemo(() => new Map(types.map(([type], i) => [type, i])), [types]);
  const shades = tensors.types.map((type) => order.get(type) ?? 0);
  const total = types.reduce((sum, [, { bytes }]) => sum + (bytes || 0), 0);
  return (
    <div class="page">
      <Section title="Model">
        <Facts facts={facts} testId="facts" />
      </Section>
      {types.length === 0 ? null : (
        <Section title="Types" note={`${humanBytes(total)} of weights`}>
          <ShareBar
            label="Sizes by type"
            parts={types.map(([name, { bytes }], i) => ({ name, bytes: bytes || 0, shade: i }))}
          />
          <Table
            label="Types"
            columns={[
              "Type",
              number("Tensors"),
              number("Weights"),
              number("Bytes"),
              number("Bits per weight"),
              number("Share"),
            ]}
            rows={types.map(([type, { tensors: count, elements, bytes }], i) => [
              <span key={type} class="type">
                <i class="swatch shade" style={shadeOf(i)} />
                {type}
              </span>,
              grouped(count),
              humanCount(elements),
              humanBytes(bytes),
              elements > 0 && !Number.isNaN(bytes) ? ((bytes * 8) / elements).toFixed(2) : "?",
              total > 0 && !Number.isNaN(bytes) ? `${((bytes / total) * 100).toFixed(1)} %` : "?",
            ])}
          />
        </Section>
      )}
      {layers.length === 0 ? null : (
        <Section title="Layers" note="bytes of each block, by type">
          <LayersPicture layers={layers} shades={shades} />
          <div class="axis" aria-hidden="true" style={{ width: `${layersShare(layers.length) * 100}%` }}>
            <span>{layers[0]?.title}</span>
            <span>{layers.length > 1 ? layers.at(-1)?.title : ""}</span>
          </div>
          <details>
            <summary>The same as a table</summary>
            <Table
              label="Layers"
              columns={["Layer", number("Bytes"), "Types"]}
              rows={layers.map(({ title, bytes, byType }) => [
                <span key={title} class="name">
                  {title}
                </span>,
                humanBytes(bytes),
                byType
                  .map((part, type) => [part, tensors.types[type] as string] as const)
                  .filter(([part]) => part > 0)
                  .sort(([a], [b]) => b - a)
                  .map(([part, type]) => `${type} ${humanBytes(part)}`)
                  .join(", "),
              ])}
            />
          </details>
        </Section>
      )}
    </div>
  );
}
