/** What a model is, and where its bytes are. */
import { grouped, humanBytes, humanCount } from "#dist/describe/text";
import type { ModelView } from "../lib/protocol";
import { ModelPicture } from "./model-picture";
import { Facts, Section, Table } from "./parts";
import { ShareBar, TypeName } from "./pictures";

const number = (title: string): { title: string; isNumber: true } => ({ title, isNumber: true });

export function Summary(props: { model: ModelView; other: ModelView | undefined; isNear: boolean }) {
  const { facts, types } = props.model;
  const total = types.reduce((sum, [, { bytes }]) => sum + (bytes || 0), 0);
  return (
    <div class="page">
      <ModelPicture {...props} />
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
              <TypeName key={type} types={props.model.tensors.types} type={i} />,
              grouped(count),
              humanCount(elements),
              humanBytes(bytes),
              elements > 0 && !Number.isNaN(bytes) ? ((bytes * 8) / elements).toFixed(2) : "?",
              total > 0 && !Number.isNaN(bytes) ? `${((bytes / total) * 100).toFixed(1)} %` : "?",
            ])}
          />
        </Section>
      )}
    </div>
  );
}
