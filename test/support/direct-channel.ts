// A state file that answers within the calling process.

import { StateFile } from "../../src/store/state-file.ts";
import type { StateChannel } from "../../src/store/state-request.ts";

export function directChannel(options: ConstructorParameters<typeof StateFile>[0]): StateChannel {
  const file = new StateFile(options);
  return {
    ask: async (request, onRows) => file.handle(request, onRows),
    close: async (last) => {
      for (const request of last) file.handle(request, () => undefined);
      file[Symbol.dispose]();
    },
  };
}
