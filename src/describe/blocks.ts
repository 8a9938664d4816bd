/** Groups the tensors of a model by block: blocks that hold the same tensors are shown as one. */
import type { GgufModelTensor } from "../file/model-tensor";

/** Blocks that follow each other and hold tensors of the same names. */
export interface BlockGroup {
  /** What stands before the number: "blk". */
  readonly prefix: string;
  readonly first: number;
  readonly last: number;
  /** The tensors of all these blocks by what follows the number: "attn_q.weight". */
  readonly members: ReadonlyMap<string, readonly GgufModelTensor[]>;
}

/** What a line of a list of tensors is about. */
export type TensorGroup = GgufModelTensor | BlockGroup;

export function isBlockGroup(group: TensorGroup): group is BlockGroup {
  return "members" in group;
}

/** The number of a block. */
const NUMBER = /^(0|[1-9]\d{0,8})$/;

/** The parts of a name that is in a block: what stands before the first number, the number, what follows. */
export function blockParts(name: string): [prefix: string, number: number, member: string] | undefined {
  const parts = name.split(".");
  const at = parts.findIndex((part, i) => i > 0 && i < parts.length - 1 && NUMBER.test(part));
  if (at < 0) return undefined;
  return [parts.slice(0, at).join("."), Number(parts[at]), parts.slice(at + 1).join(".")];
}

interface Block {
  prefix: string;
  number: number;
  members: Map<string, GgufModelTensor>;
}

/** Tensors and groups of blocks, each where the first of its tensors is in the file. */
export function groupTensors(tensors: readonly GgufModelTensor[]): TensorGroup[] {
  const blocks = new Map<string, Block>();
  const blockOf = new Map<GgufModelTensor, Block>();
  for (const tensor of tensors) {
    const parts = blockParts(tensor.name);
    if (parts === undefined) continue;
    const [prefix, number, member] = parts;
    const key = `${prefix}.${number}`;
    const block = blocks.get(key) ?? { prefix, number, members: new Map() };
    blocks.set(key, block);
    block.members.set(member, tensor);
    blockOf.set(tensor, block);
  }
  const groups = groupBlocks([...blocks.values()]);
  const shown = new Set<BlockGroup>();
  return tensors.flatMap((tensor): TensorGroup[] => {
    const block = blockOf.get(tensor);
    const group = block && groups.get(block);
    // A block of a single tensor needs no title.
    if (group === undefined || (group.first === group.last && group.members.size === 1)) return [tensor];
    if (shown.has(group)) return [];
    shown.add(group);
    return [group];
  });
}

/** The group of each block. */
function groupBlocks(blocks: readonly Block[]): Map<Block, BlockGroup> {
  const byPrefix = new Map<string, Block[]>();
  for (const block of blocks) {
    const others = byPrefix.get(block.prefix) ?? [];
    byPrefix.set(block.prefix, others);
    others.push(block);
  }
  const groups = new Map<Block, BlockGroup>();
  for (const [prefix, all] of byPrefix) {
    all.sort((a, b) => a.number - b.number);
    let run: Block[] = [];
    const end = (): void => {
      const [first, last] = [run[0] as Block, run.at(-1) as Block];
      const members = new Map(
        Array.from(first.members.keys(), (member) => [
          member,
          run.map((block) => block.members.get(member) as GgufModelTensor),
        ]),
      );
      const group = { prefix, first: first.number, last: last.number, members };
      for (const block of run) groups.set(block, group);
      run = [];
    };
    for (const block of all) {
      const before = run.at(-1);
      const follows = before?.number === block.number - 1 && sameMembers(before, block);
      if (before !== undefined && !follows) end();
      run.push(block);
    }
    end();
  }
  return groups;
}

function sameMembers(a: Block, b: Block): boolean {
  if (a.members.size !== b.members.size) return false;
  for (const member of a.members.keys()) if (!b.members.has(member)) return false;
  return true;
}

/** "blk.0 to blk.31: 9 tensors each", or "blk.0: 9 tensors". */
export function groupTitle({ prefix, first, last, members }: BlockGroup): string {
  const count = `${members.size} tensor${members.size === 1 ? "" : "s"}`;
  return first === last ? `${prefix}.${first}: ${count}` : `${prefix}.${first} to ${prefix}.${last}: ${count} each`;
}

/** The types of some tensors, the most common first: "Q4_K, Q6_K". */
export function typesText(tensors: readonly GgufModelTensor[]): string {
  const counts = new Map<string, number>();
  for (const { type } of tensors) counts.set(type, (counts.get(type) ?? 0) + 1);
  return Array.from(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([type]) => type)
    .join(", ");
}
