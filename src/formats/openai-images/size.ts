import type { ImageOptions } from "../../../gen/parley/v1/completion_pb.js";
import type { Image } from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";

/** Shapes that image models make, as width and height. */
const RATIOS = ["1:1", "3:2", "2:3", "4:3", "3:4", "5:4", "4:5", "16:9", "9:16", "21:9"].map((name) => {
  const [width = 1, height = 1] = name.split(":").map(Number);
  return { name, ratio: width / height };
});

/** Names of sizes by the largest longer side, in pixels. */
const SIZES = [
  ["1K", 1_536],
  ["2K", 3_072],
  ["4K", Number.POSITIVE_INFINITY],
] as const;

/**
 * The nearest shape and size for `WIDTHxHEIGHT`, with the other options; undefined for `auto` without any. Throws
 * `invalid_request` for any other size.
 */
export function toImageOptions(
  size: string,
  { mask, partialCount }: { readonly mask: Image | undefined; readonly partialCount: number },
): ImageOptions | undefined {
  const others = { $typeName: "parley.v1.ImageOptions", partialCount, ...(mask !== undefined && { mask }) } as const;
  if (size === "auto")
    return mask === undefined && partialCount === 0 ? undefined : { ...others, aspectRatio: "", size: "" };
  const [, width = 0, height = 0] = (/^(\d{1,5})x(\d{1,5})$/.exec(size) ?? []).map(Number);
  if (width === 0 || height === 0)
    throw invalidField("size", "must be auto, or a width and a height such as 1024x1024");
  const distance = (ratio: number): number => Math.abs(Math.log((ratio * height) / width));
  const nearest = RATIOS.reduce((best, each) => (distance(each.ratio) < distance(best.ratio) ? each : best));
  const longer = Math.max(width, height);
  const [name] = SIZES.find(([, most]) => longer <= most)!;
  return { ...others, aspectRatio: nearest.name, size: name };
}
