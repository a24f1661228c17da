# SPDX-License-Identifier: BSD-2-Clause
"""Perfetto's trace: the rules of track_event.proto, trace_packet.proto and interned_data.proto."""
import ftrace
import timeline
from prototext import decode, one
from timeline import check

CLEARED, NEEDS_STATE = 1, 2
REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6


class Reader:
    def __init__(self):
        self.timeline = timeline.Timeline()
        self.interned = None
        self.tracks = {}    # uuid: descriptor
        self.losses = {}    # uuid: (name, start)
        self.gaps = {}      # (ids, name, end): duration
        self.states = {}    # uuid: (name, start, values) of the scheduling slice that is open
        self.start = 0
        self.clock = self.primary = None
        self.snapshots = 0
        self.host, self.labels = '', {}
        self.events = []
        self.ftrace = ftrace.Ftrace()

    def intern(self, data):
        for kind, entries in data.items():
            for entry in entries:
                iid, name = one(entry, 'iid'), one(entry, 'name', '')
                check(iid > 0 and iid not in self.interned.setdefault(kind, {}),
                      f'{kind} {iid} is there twice')
                self.interned[kind][iid] = name

    def name_of(self, kind, message, iid_field, name_field=None):
        if name_field and name_field in message:
            return one(message, name_field)
        return self.interned[kind][one(message, iid_field)]

    def packet(self, packet):
        flags = one(packet, 'sequence_flags', 0)
        check(one(packet, 'trusted_packet_sequence_id') == 1, 'sequence id')
        if flags & CLEARED:
            self.interned = {}
        if flags & NEEDS_STATE:
            check(self.interned is not None, 'a packet needs missing state')
        for snapshot in packet.get('clock_snapshot', []):
            self.snapshot(snapshot)
        for system in packet.get('system_info', []):
            if 'utsname' in system:
                self.ftrace.system(one(system, 'utsname'))
            self.host = one(system, 'machine_name', '')
        for attributes in packet.get('trace_attributes', []):
            for a in attributes['attribute']:
                check(one(a, 'key') not in self.labels, 'a label is there twice')
                self.labels[one(a, 'key')] = one(a, 'string_value')
        for bundle in packet.get('ftrace_events', []):
            self.ftrace.bundle(bundle)
        for defaults in packet.get('trace_packet_defaults', []):
            self.clock = one(defaults, 'timestamp_clock_id')
        if 'interned_data' in packet:
            self.intern(one(packet, 'interned_data'))
        if 'track_descriptor' in packet:
            track = one(packet, 'track_descriptor')
            check(one(track, 'uuid') > 0, 'a track has no uuid')
            parent = one(track, 'parent_uuid', 0)
            check(not parent or parent in self.tracks, f'track {parent} is not there')
            self.tracks[one(track, 'uuid')] = track
        if 'track_event' in packet:
            check(flags & NEEDS_STATE, 'an event lacks the flag for the state that it needs')
            self.event(one(packet, 'timestamp'), one(packet, 'track_event'))

    def snapshot(self, snapshot):
        clocks = {one(c, 'clock_id'): one(c, 'timestamp') for c in snapshot['clocks']}
        primary = one(snapshot, 'primary_trace_clock')
        check(len(clocks) == len(snapshot['clocks']), 'a clock is twice in a snapshot')
        check((primary, set(clocks)) in ((MONOTONIC, {MONOTONIC}),
                                         (BOOTTIME, {BOOTTIME, MONOTONIC, REALTIME})), 'clocks')
        check(self.primary in (None, primary), 'another clock')
        if not self.snapshots:
            self.start = clocks[primary]
        check(not self.ftrace.snapshots or clocks[primary] >= self.ftrace.snapshots[-1][0],
              'a snapshot of earlier')
        self.primary = primary
        self.snapshots += 1
        self.ftrace.snapshots.append([clocks[clock] for clock in sorted(clocks, reverse=True)])

    def event(self, time, event):
        uuid = one(event, 'track_uuid')
        check(uuid in self.tracks, f'track {uuid} is not there')
        values = {}
        for a in event.get('debug_annotations', []):
            value = [v for k, v in a.items() if k not in ('name', 'name_iid')][0][0]
            key = self.name_of('debug_annotation_names', a, 'name_iid', 'name')
            # Perfetto's numbers are integers; the other formats have them as text.
            whole = isinstance(value, int) and (key.startswith('arg') or key == 'caller')
            values[key] = hex(value) if whole else str(value) if key == 'result' else value
        name = None
        if 'name' in event or 'name_iid' in event:
            name = self.name_of('event_names', event, 'name_iid', 'name')
        if 'category_iids' in event:
            values['module'] = self.interned['event_categories'][one(event, 'category_iids')]
        for flows, ends in ((event.get('flow_ids', []), False),
                            (event.get('terminating_flow_ids', []), True)):
            for flow in flows:
                check(one(self.tracks[uuid], 'name', '') == 'scheduling', f'flow {flow}: track')
                self.ftrace.flow(flow, ends, time, self.ids_of(uuid), name, values)
        self.events.append((time - self.start, uuid, one(event, 'type'), name, values,
                            one(event, 'counter_value', None)))

    def ids_of(self, uuid):
        track = self.tracks[uuid]
        if 'thread' in track:
            thread = one(track, 'thread')
            return one(thread, 'pid'), one(thread, 'tid')
        name = one(track, 'name')
        if 'parent_uuid' not in track:
            return 0, int(name.split('thread ')[1])
        return self.ids_of(one(track, 'parent_uuid'))

    def add(self, time, uuid, kind, name, values, counter):
        track, ids = self.tracks[uuid], self.ids_of(uuid)
        if 'counter' in track:
            check(kind == 'TYPE_COUNTER' and one(track, 'name') == 'CPU', 'counter')
            self.timeline.cpus.append((*ids, time, counter))
        elif one(track, 'name', '') == 'scheduling':
            if kind == 'TYPE_INSTANT':
                check(name in ('wakes', 'is woken'), f'{name} among states')
            elif kind == 'TYPE_SLICE_BEGIN':
                check(uuid not in self.states, f'{name} begins before the end of the one before it')
                self.states[uuid] = name, time, values
            else:
                name, start, values = self.states.pop(uuid)
                self.timeline.sched.append((*ids, start, time, name, values))
        elif one(track, 'name', '') == 'lost events':
            if kind == 'TYPE_SLICE_BEGIN':
                check(uuid not in self.losses, 'gaps overlap')
                self.losses[uuid] = (name, time)
            else:
                begun = self.losses.pop(uuid)
                self.gaps[ids, begun[0], time] = time - begun[1]
        elif kind == 'TYPE_SLICE_BEGIN':
            self.timeline.enter(*ids, time, name, values)
        elif kind == 'TYPE_SLICE_END':
            self.timeline.leave(*ids, time, values)
        else:
            check(kind == 'TYPE_INSTANT', kind)
            if 'entries' in values:
                values['gap_ns'] = self.gaps.pop((ids, name, time))
            self.timeline.marks.append((*ids, time, name, values))

    def read(self, path):
        with open(path, 'rb') as f:
            trace = decode(f.read(), 'perfetto.proto', 'perfetto.protos.Trace')
        for packet in trace['packet']:
            self.packet(packet)
        # packets without a clock are of the primary one, whose default is BOOTTIME
        check(self.clock == (MONOTONIC if self.primary == MONOTONIC else None), 'clock')
        check(self.snapshots <= (66 if self.primary == BOOTTIME else 1), 'snapshots')
        check(self.host == self.labels.get('host', ''), "the machine's name")
        check(self.primary != MONOTONIC or not self.ftrace.cpus, "ftrace's clock is BOOTTIME")
        # Like Perfetto: packets sorted by time, packets of the same time in file order.
        self.events.sort(key=lambda event: event[0])
        for event in self.events:
            self.add(*event)
        check(not self.gaps and not self.losses, 'a gap has no mark')
        check(not self.states, f'{self.states} never end')
        order = list(dict.fromkeys(self.ids_of(uuid) for uuid in self.tracks
                                   if 'process' not in self.tracks[uuid]))
        place = {ids: i for i, ids in enumerate(order)}
        self.timeline.sched.sort(key=lambda state: place[state[:2]])
        self.timeline.more = self.ftrace.finish(self.start, self.timeline.sched)
        for uuid, track in self.tracks.items():
            if 'thread' in track:
                thread, process = one(track, 'thread'), self.tracks[one(track, 'parent_uuid')]
                process = one(process, 'process')
                check(one(process, 'pid') == one(thread, 'pid'), 'a thread of another process')
                self.timeline.threads.append((*self.ids_of(uuid), one(thread, 'thread_name', ''),
                                           one(process, 'process_name', '')))
            elif 'parent_uuid' not in track and 'process' not in track:
                name = one(track, 'name').rpartition('thread ')[0].rstrip()
                self.timeline.threads.append((*self.ids_of(uuid), name, ''))
        return self.timeline


timeline.main(Reader().read)
