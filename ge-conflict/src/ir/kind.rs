//! Operator types that passes know, and the families they form.

macro_rules! kinds {
    ($($(#[$m:meta])* $name:ident = $($text:literal)|+),* $(,)?) => {
        /// An operator type that some pass treats specially.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$m])* $name,)*
            /// Any other.
            Other,
        }
        impl Kind {
            /// The kind of a type name.
            pub fn of(name: &str) -> Kind {
                match name { $($($text)|+ => Kind::$name,)* _ => Kind::Other }
            }
        }
    };
}

kinds! {
    /// An input of a graph.
    Data = "Data",
    /// An input that operators update in place.
    RefData = "RefData",
    /// An image input.
    AippData = "AippData",
    /// Another kind of input.
    AnnData = "AnnData",
    /// A variable.
    Variable = "Variable" | "VariableV2",
    /// A constant.
    Const = "Const" | "Constant" | "ConstPlaceHolder",
    /// A constant kept in a file.
    FileConstant = "FileConstant",
    /// The outputs of a graph.
    NetOutput = "NetOutput",
    /// Writes a variable.
    Assign = "Assign" | "AssignAdd" | "AssignSub" | "AssignVariableOp" | "AssignAddVariableOp" | "AssignSubVariableOp",
    /// A copy.
    Identity = "Identity",
    /// A variable's value at that moment.
    ReadVariableOp = "ReadVariableOp",
    /// A copy made by the run time.
    MemcpyAsync = "MemcpyAsync",
    /// An address handed on by the run time.
    MemcpyAddrAsync = "MemcpyAddrAsync",
    /// A loop.
    While = "While" | "StatelessWhile" | "_While",
    /// A two-way branch.
    If = "If" | "StatelessIf" | "_If",
    /// A many-way branch.
    Case = "Case" | "StatelessCase",
    /// A call of one subgraph.
    PartitionedCall = "PartitionedCall" | "StatefulPartitionedCall",
    /// Joins branches.
    Merge = "Merge" | "RefMerge",
    /// Joins branches (streams).
    StreamMerge = "StreamMerge",
    /// Splits the flow.
    Switch = "Switch",
    /// Splits the flow, by reference.
    RefSwitch = "RefSwitch",
    /// Splits the flow many ways.
    SwitchN = "SwitchN",
    /// Chooses a stream.
    StreamSwitch = "StreamSwitch",
    /// Chooses a label.
    LabelSwitchByIndex = "LabelSwitchByIndex",
    /// A view with another shape.
    Reshape = "Reshape",
    /// Reads only the shape.
    Shape = "Shape",
    /// Reads only the rank.
    Rank = "Rank",
    /// A loop's condition in the old form.
    LoopCond = "LoopCond",
    /// A loop's back edge in the old form.
    NextIteration = "NextIteration" | "RefNextIteration",
    /// Clears memory before atomic operators.
    MemSet = "MemSet",
    /// The older operator for that.
    AtomicAddrClean = "AtomicAddrClean",
    /// A concatenation without a copy.
    PhonyConcat = "PhonyConcat",
    /// A split without a copy.
    PhonySplit = "PhonySplit",
    /// A broadcast among devices.
    Broadcast = "HcomBroadcast" | "HvdCallbackBroadcast",
    /// Cache maintenance: reads nothing, writes nothing.
    Cmo = "Cmo",
}

impl Kind {
    /// The graph's inputs.
    pub fn is_data(self) -> bool {
        matches!(
            self,
            Kind::Data | Kind::RefData | Kind::AippData | Kind::AnnData
        )
    }

    /// Variables proper and inputs that behave like them.
    pub fn is_var_like(self) -> bool {
        matches!(self, Kind::Variable | Kind::RefData)
    }

    /// Constants of any kind.
    pub fn is_const(self) -> bool {
        matches!(self, Kind::Const | Kind::FileConstant)
    }

    /// What can be split and removed for read-write reasons.
    pub fn is_identity_like(self) -> bool {
        matches!(self, Kind::Identity | Kind::ReadVariableOp)
    }

    /// Copies: beside one of these, layout needs no further one.
    pub fn is_copy(self) -> bool {
        matches!(
            self,
            Kind::Identity | Kind::MemcpyAsync | Kind::MemcpyAddrAsync
        )
    }

    /// Clears memory.
    pub fn is_clean(self) -> bool {
        matches!(self, Kind::MemSet | Kind::AtomicAddrClean)
    }

    /// Its address is baked into the task.
    pub fn is_address_switch(self) -> bool {
        matches!(self, Kind::StreamSwitch | Kind::LabelSwitchByIndex)
    }

    /// Control flow by subgraphs.
    pub fn is_control(self) -> bool {
        matches!(self, Kind::While | Kind::If | Kind::Case)
    }

    /// Outgoing control edges stay with these when something is put behind them.
    pub fn keeps_control(self) -> bool {
        matches!(self, Kind::Switch | Kind::RefSwitch | Kind::SwitchN)
    }
}
