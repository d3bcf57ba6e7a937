// The decision before or after a place of the log, found by reading events around it.

import { ask } from "./api.js";
import * as routes from "./routes.js";

const INPUTS = new Set(["ConfigurationApplied", "NodeRegistered", "NodeUpdated", "NodeRemoved",
  "ApplicationSubmitted", "ApplicationRemoved", "AskSubmitted", "AskWithdrawn", "AllocationRestored",
  "AllocationReleased", "InputRejected", "LeaderStarted", "CycleStarted", "CheckpointRecorded"]);
const FIRST = 128;
const LARGEST = 2048;

/** Whether an event is a decision; what is not known yet counts as one rather than being passed over. */
export const decides = (event) => !INPUTS.has(event.type);

/** The seq of the next (+1) or previous (-1) decision; null when there is none. */
export async function decision(from, direction, end) {
  let size = FIRST;
  let edge = from;
  while (direction > 0 ? edge < end : edge > 1) {
    const after = direction > 0 ? edge : Math.max(0, edge - 1 - size);
    const until = direction > 0 ? Math.min(end, edge + size) : edge - 1;
    const found = (await ask(routes.events(after, until))).filter(({ event }) => decides(event));
    if (found.length) return (direction > 0 ? found[0] : found.at(-1)).event.seq;
    edge = direction > 0 ? until : after + 1;
    size = Math.min(LARGEST, size * 4);
  }
  return null;
}
