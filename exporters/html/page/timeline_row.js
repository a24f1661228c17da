// SPDX-License-Identifier: BSD-2-Clause
// Draws one row of the timeline. Where slices are narrower than a pixel, a pixel gets the color of the longest that
// begins in it, as strong as the share of the pixel's time that they fill.
import { longest, search } from "./levels.js";
import { state, isLit, functionName, fitted, colors } from "./state.js";

const WIDE = 1; // pixels: slices from here on are drawn one by one
const ENDED = 2; // repaired or open: see "how" in data.js

/*
 * Calls narrower than a pixel are put into a picture of one line, which is then drawn as high as the row: a rectangle for
 * each would take ten times as long.
 */
const line = document.createElement("canvas");
let image = null, pixels = null; // of line; pixels: 0xAABBGGRR

function clearLine(width) {
  if (line.width !== width || !image) {
    line.width = width;
    line.height = 1;
    image = line.getContext("2d").createImageData(width, 1);
    pixels = new Uint32Array(image.data.buffer);
  }
  pixels.fill(0);
}

function putPixel(x, name, share) {
  const rgb = colors.functionRgb(name), alpha = (isLit(name) ? 255 : 38) * (0.4 + 0.6 * share);
  pixels[x] = ((alpha << 24) | ((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}

/** @view: context, from (ns at the left edge), scale (pixels per ns), left and width in whole pixels. */
export function drawRow(view, row, y) {
  const wide = [], isCalls = row.name === "calls";
  if (isCalls) clearLine(view.width);
  walkRow(view, row, (slice, x, width, share) => {
    if (isCalls && width < WIDE) putPixel(Math.max(0, x), row.all.name[slice], share);
    else wide.push([slice, x, width, share]);
  });
  if (isCalls) {
    line.getContext("2d").putImageData(image, 0, 0);
    view.context.imageSmoothingEnabled = false;
    view.context.drawImage(line, view.left, y, view.width, row.height - 1);
  }
  for (const [slice, x, width, share] of wide) styles[row.name](view, row, slice, x, width, y, share);
}

/** Calls @draw for what is visible: a slice, its place and width in pixels (less than WIDE: it stands for its pixel), its share. */
function walkRow(view, row, draw) {
  const { start, end, sum } = row.all, to = view.from + view.width / view.scale;
  let i = search(row.first, row.end, (slice) => end[slice] >= view.from);
  if (i > row.first && row.name === "marks") i = search(row.first, row.end, (slice) => start[slice] >= view.from);
  while (i < row.end && start[i] < to) {
    const x = (start[i] - view.from) * view.scale, wide = (end[i] - start[i]) * view.scale;
    if (wide >= WIDE) {
      draw(i, x, wide, 1);
      i++;
      continue;
    }
    const limit = view.from + (Math.floor(x) + 1) / view.scale;
    let next = search(i, row.end, (slice) => slice > i && start[slice] >= limit);
    if (next > i + 1 && (end[next - 1] - start[next - 1]) * view.scale >= WIDE) next--;
    const share = Math.min(1, (sum[next] - sum[i]) * view.scale);
    draw(next > i + 1 ? longest(row, i, next) : i, Math.floor(x), 0, share);
    i = next;
  }
}

const styles = {
  calls(view, row, slice, x, width, y, share) {
    const { context } = view, name = row.all.name[slice], lit = isLit(name), merged = row.all.count[slice] > 1;
    context.globalAlpha = (lit ? 1 : 0.15) * (0.4 + 0.6 * share);
    context.fillStyle = colors.functionColor(name);
    // A slice far wider than the window would lose precision.
    const from = Math.max(-2, x), right = Math.min(view.width + 2, x + width - (width > 3 ? 0.6 : 0));
    context.fillRect(view.left + from, y, right - from, row.height - 1);
    context.globalAlpha = 1;
    if (width < 3) return;
    if (merged || row.all.how[slice] >= ENDED) hatch(context, view.left + from, y, right - from, row.height - 1);
    if (name === state.chosen || (state.hits && lit)) {
      context.strokeStyle = colors.themeColor(name === state.chosen ? "--ink" : "--hit");
      context.strokeRect(view.left + from + 0.5, y + 0.5, right - from - 1, row.height - 2);
    }
    const shown = Math.max(0, from);
    const text = (merged ? row.all.count[slice] + " × " : "") + functionName(name);
    const label = width > 24 ? fitted(text, right - shown - 6) : "";
    if (!label) return;
    context.fillStyle = colors.themeColor(lit ? "--on-color" : "--faint");
    context.fillText(label, view.left + shown + 3, y + row.height / 2);
  },
  sched(view, row, slice, x, width, y, share) {
    const from = Math.max(-2, x), right = Math.min(view.width + 2, x + Math.max(1, width));
    view.context.globalAlpha = 0.3 + 0.7 * share;
    view.context.fillStyle = colors.stateColor(state.data.head.texts[row.all.name[slice]]);
    view.context.fillRect(view.left + from, y, right - from, row.height - 2);
    view.context.globalAlpha = 1;
  },
  marks(view, row, slice, x, width, y) {
    const { context } = view;
    context.fillStyle = colors.themeColor("--accent");
    context.beginPath();
    context.moveTo(view.left + x, y + row.height - 1);
    context.lineTo(view.left + x - 3.5, y + 1);
    context.lineTo(view.left + x + 3.5, y + 1);
    context.fill();
  },
  gaps(view, row, slice, x, width, y) {
    view.context.fillStyle = colors.themeColor("--loss");
    view.context.fillRect(view.left + x, y, Math.max(2, width), row.height - 2);
  },
};

/** What is not one call with both ends has stripes. */
function hatch(context, x, y, width, height) {
  context.strokeStyle = "rgb(0 0 0 / 14%)";
  context.lineWidth = 1;
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.beginPath();
  for (let at = x - height - (x % 8); at < x + width; at += 8) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

/** The slice of @row at @time, or the longest one within @pixel ns of it; -1: none. */
export function sliceAt(row, time, pixel) {
  const { start, end } = row.all, reach = row.name === "marks" ? 5 * pixel : pixel;
  const first = search(row.first, row.end, (slice) => end[slice] >= time - reach);
  const to = search(row.first, row.end, (slice) => start[slice] > time + reach);
  if (first >= to || first >= row.end) return -1;
  for (let i = first; i < Math.min(to, first + 3); i++)
    if (start[i] <= time && time <= end[i] && end[i] - start[i] > pixel) return i;
  return longest(row, first, to);
}
