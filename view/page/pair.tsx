/** Two tensors: in what they differ, and pictures of both and of the difference. */
import type { TensorComparison } from "gguf-native";
import { useMemo, useState } from "preact/hooks";
import { grouped } from "#dist/describe/text";
import { type ColorScale, colorScale, type Picture } from "../lib/averages";
import type { ModelView, TensorAddress } from "../lib/protocol";
import { type Answer, ask, useAnswer } from "./client";
import { PICTURE, Tip } from "./look";
import { Answered, Facts, Section } from "./parts";
import { Choice, Heatmap, type Measure, MeasureChoice, short } from "./pictures";

const SIZE = { width: PICTURE.width / 2, height: PICTURE.height / 2 };

/** A tensor of a model; the number is -1 where the model has none of that name. */
export interface Chosen {
  readonly model: ModelView;
  readonly tensor: number;
}

export function decibels(ratio: number): string {
  // Of a ratio just below 1, toFixed makes "-0.0".
  if (Number.isFinite(ratio)) return `${ratio.toFixed(1).replace(/^-(0\.0)$/, "$1")} dB`;
  return ratio > 0 ? "exact" : "?";
}

/** How many times finer the colours of the difference are than those of the tensors. */
const FINER = { x1: "as of A and B", x10: "10 times finer", x50: "50 times finer", own: "of its own" };

/** @param known the comparison, where it has been made already */
export function TwoTensors({ a, b, known }: { a: Chosen; b: Chosen; known?: TensorComparison | undefined }) {
  const [measure, setMeasure] = useState<Measure>("means");
  const [finer, setFiner] = useState<keyof typeof FINER>("x1");
  const pictures = [usePicture("A", a), usePicture("B", b)] as const;
  const scale = useMemo(() => {
    const shown = pictures.flatMap((answer) => (answer.state === "done" ? (answer.result ?? []) : []));
    const cells = Float32Array.from(shown.flatMap((picture) => [...picture[measure]]));
    return colorScale(cells, measure === "means" ? undefined : 0);
  }, [...pictures, measure]);
  const sides = [
    { title: "A", testId: "picture-a", chosen: a, answer: pictures[0] },
    { title: "B", testId: "picture-b", chosen: b, answer: pictures[1] },
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
      <Section
        title="Values"
        note={
          <span class="fields">
            <MeasureChoice measure={measure} onChange={setMeasure} />
            {canSubtract ? <Choice label="Colours of A - B" value={finer} options={FINER} onChange={setFiner} /> : null}
          </span>
        }
      >
        <div class="side-by-side">
          {sides.map((side) => (
            <Side key={side.title} {...side} measure={measure} scale={scale} />
          ))}
          {canSubtract ? (
            <Difference
              {...addresses}
              measure={measure}
              scale={finer === "own" ? undefined : { middle: 0, limit: scale.limit / Number(finer.slice(1)) }}
            />
          ) : null}
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

/** Nothing where the model has no such tensor. */
function usePicture(key: string, chosen: Chosen): Answer<Picture | undefined> {
  return useAnswer(key, (options) =>
    chosen.tensor < 0 ? Promise.resolve(undefined) : ask("picture", { ...addressOf(chosen), ...SIZE }, options),
  );
}

interface SideProps {
  title: string;
  testId: string;
  chosen: Chosen;
  answer: Answer<Picture | undefined>;
  measure: Measure;
  scale: ColorScale;
}

function Side({ title, testId, chosen, answer, measure, scale }: SideProps) {
  const { model, tensor } = chosen;
  const { types, typeOf, shapes } = model.tensors;
  return (
    <div>
      <h3>
        {title}{" "}
        <span class="note">
          {types[typeOf[tensor] as number]}, {shapes[tensor]}
        </span>
      </h3>
      <Answered answer={answer} label={`Averaging ${title}`}>
        {(picture) =>
          picture && (
            <Heatmap
              {...{ picture, title, testId, measure, scale }}
              tip={(row, column) => <Tip id={title} address={addressOf(chosen)} weight={{ row, column }} />}
            />
          )
        }
      </Answered>
    </div>
  );
}

function Difference({ a, b, measure, scale }: Pair & { measure: Measure; scale: ColorScale | undefined }) {
  const answer = useAnswer("difference", (options) => ask("difference", { a, b, ...SIZE }, options));
  return (
    <div>
      <h3>A - B</h3>
      <Answered answer={answer} label="Subtracting">
        {(picture) => (
          <Heatmap
            {...{ picture, title: "Difference A - B", testId: "difference", measure, scale }}
            tip={(row, column) => (
              <>
                A <Tip id="A" address={a} weight={{ row, column }} />B{" "}
                <Tip id="B" address={b} weight={{ row, column }} />
              </>
            )}
          />
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
