//! File formats that several members read and write: GraphDef, Event and Summary protobufs, TFRecord framing.
