/** Two tensors: in what they differ, and pictures of both and of the difference. */
import type { TensorComparison } from "gguf-native";
import { useState } from "preact/hooks";
import { grouped } from "#dist/describe/text";
import type { ModelView, TensorAddress } from "../lib/protocol";
import { ask, useAnswer } from "./client";
import { PICTURE } from "./look";
import { Answered, Facts, Section } from "./parts";
import { Heatmap, type Measure, MeasureChoice, short } from "./pictures";

const SIZE = { width: PICTURE.width / 2, height: PICTURE.height / 2 };

/** A tensor of a model; the number is -1 where the model has none of that name. */
export interface Chosen {
  readonly model: ModelView;
  readonly tensor: number;
}

export function decibels(ratio: number): string {
  if (Number.isFinite(ratio)) return `${ratio.toFixed(1)} dB`;
  return ratio > 0 ? "exact" : "?";
}

/** @param known the comparison, where it has been made already */
export function TwoTensors({ a, b, known }: { a: Chosen; b: Chosen; known?: TensorComparison | undefined }) {
  const [measure, setMeasure] = useState<Measure>("means");
  const sides = [
    { title: "A", testId: "picture-a", chosen: a },
    { title: "B", testId: "picture-b", chosen: b },
  ].filter(({ chosen }) => chosen.tensor >= 0);
  const shape = ({ model, tensor }: Chosen): string | undefined => model.tensors.shapes[tensor];
  const isBoth = sides.length === 2;
  const canSubtract = isBoth && shape(a) === shape(b);
  const addresses = { a: addressOf(a), b: addressOf(b) };
  return (
    <>
      {canSubtract ? (
        <Errors {...addresses} known={known} />
      ) : (
        <p class="note">
          {isBoth
            ? "They have different shapes, so there is no difference to show."
            : `${a.tensor < 0 ? "A" : "B"} has no tensor of this name.`}
        </p>
      )}
      <Section title="Values" note={<MeasureChoice measure={measure} onChange={setMeasure} />}>
        <div class="side-by-side">
          {sides.map(({ title, testId, chosen }) => (
            <Side key={title} title={title} testId={testId} chosen={chosen} measure={measure} />
          ))}
          {canSubtract ? <Difference {...addresses} measure={measure} /> : null}
        </div>
      </Section>
    </>
  );
}

function addressOf({ model, tensor }: Chosen): TensorAddress {
  return { model: model.id, tensor };
}

interface Pair {
  a: TensorAddress;
  b: TensorAddress;
}

function Side({
  title,
  testId,
  chosen,
  measure,
}: {
  title: string;
  testId: string;
  chosen: Chosen;
  measure: Measure;
}) {
  const { model, tensor } = chosen;
  const { types, typeOf, shapes } = model.tensors;
  const answer = useAnswer(title, (options) => ask("picture", { ...addressOf(chosen), ...SIZE }, options));
  return (
    <div>
      <h3>
        {title}{" "}
        <span class="note">
          {types[typeOf[tensor] as number]}, {shapes[tensor]}
        </span>
      </h3>
      <Answered answer={answer} label={`Averaging ${title}`}>
        {(picture) => <Heatmap picture={picture} title={title} testId={testId} measure={measure} />}
      </Answered>
    </div>
  );
}

function Difference({ a, b, measure }: Pair & { measure: Measure }) {
  const answer = useAnswer("difference", (options) => ask("difference", { a, b, ...SIZE }, options));
  return (
    <div>
      <h3>A - B</h3>
      <Answered answer={answer} label="Subtracting">
        {(picture) => (
          <Heatmap picture={picture} title="Difference A - B" testId="difference" measure={measure} />
        )}
      </Answered>
    </div>
  );
}

function Errors({ a, b, known }: Pair & { known: TensorComparison | undefined }) {
  const answer = useAnswer("errors", (options) =>
    known === undefined ? ask("compare", { a, b }, options) : Promise.resolve(known),
  );
  return (
    <Answered answer={answer} label="Comparing">
      {({ count, different, incomparable, maxError, meanError, rmsError, relativeError, snr, sameBytes }) => (
        <Facts
          testId="comparison"
          facts={[
            ["signal to noise", decibels(snr)],
            ["largest error", short(maxError)],
            ["mean error", short(meanError)],
            ["root mean square", short(rmsError)],
            ["relative error", short(relativeError)],
            [
              "values that differ",
              `${grouped(different)} of ${grouped(count)}${sameBytes ? ", and the same bytes" : ""}`,
            ],
            ...(incomparable > 0 ? [["not comparable", grouped(incomparable)] as const] : []),
          ]}
        />
      )}
    </Answered>
  );
}
